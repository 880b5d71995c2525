/** What an e-mail address must look like. Pure. */
/** Something, an @ and a host name. Whether mail arrives is for the mail server to say, so only what could be two addresses is refused. */
const emailShape = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@(?=.{1,255}$)[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)*$/u

/** The address without spaces around it, or null when it is none. */
export function cleanEmail(text: string): string | null {
  const email = text.trim()
  return emailShape.test(email) && hasOneSpelling(email) ? email : null
}

/**
 * Whether the letters beyond ASCII have no other form: none is a capital, is a capital of ASCII in upper case (a dotless i), or is something
 * else in form NFKC. The Kelvin sign is a `k` in lower case, and databases differ in how they lower what is not ASCII. Decision 0464 says why.
 */
function hasOneSpelling(email: string): boolean {
  if (email !== email.normalize('NFKC')) return false
  return [...email].every(letter => letter < '\u0080' || (letter === letter.toLowerCase() && !/^[A-Z]$/.test(letter.toUpperCase())))
}
