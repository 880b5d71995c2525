/** The accepted form of an e-mail address. Pure. */
/** Some characters, an @ and a host name. The pattern refuses text that could contain two addresses. It does not check whether the mailbox exists. */
const emailShape = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@(?=.{1,255}$)[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)*$/u

/** Returns an address in the form in which addresses are compared: its ASCII letters in lower case. Other letters have one form only. */
export const comparedEmail = (email: string): string => email.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** Returns the address without surrounding spaces, or null when it is invalid. */
export function cleanEmail(text: string): string | null {
  const email = text.trim()
  return emailShape.test(email) && hasOneSpelling(email) ? email : null
}

/**
 * Returns whether every letter beyond ASCII has only one form. Such a letter must not be a capital, must not become an ASCII capital in upper case (a
 * dotless i does), and must not change in form NFKC. Without this check, two spellings could mean one address: the Kelvin sign becomes `k` in lower
 * case, and databases differ in how they convert letters beyond ASCII. Decision 0464 gives the reasons.
 */
function hasOneSpelling(email: string): boolean {
  if (email !== email.normalize('NFKC')) return false
  return [...email].every(letter => letter < '\u0080' || (letter === letter.toLowerCase() && !/^[A-Z]$/.test(letter.toUpperCase())))
}
