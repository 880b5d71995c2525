/** What an e-mail address must look like. Pure. */
/** Something, an @ and a host name. Whether mail arrives is for the mail server to say, so only what could be two addresses is refused. */
const emailShape = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@(?=.{1,255}$)[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)*$/u

/** The address without spaces around it, or null when it is none. */
export function cleanEmail(text: string): string | null {
  const email = text.trim()
  return emailShape.test(email) ? email : null
}
