/** What names, addresses and ids that people type must look like. Pure. */
import { fail } from '../../platform/errors.ts'

const nameShape = /^[^\p{Cc}]{1,100}$/u
/** Something, an @ and a host name. Whether mail arrives is for the mail server to say, so only what could be two addresses is refused. */
const emailShape = /^[^\s@,;:<>()[\]"\\\p{Cc}]{1,64}@(?=.{1,255}$)[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)*$/u
const int4Max = 2 ** 31 - 1

/** The name without spaces around it. Throws `bad_name`. */
export function cleanName(text: string): string {
  const name = text.trim()
  if (!nameShape.test(name)) throw fail('bad_name', { message: 'A name has 1 to 100 characters and no control characters.' })
  return name
}

/** The address without spaces around it, or null when it is none. */
export function cleanEmail(text: string): string | null {
  const email = text.trim()
  return emailShape.test(email) ? email : null
}

/** The id in a path or body, or null when no row can have it. */
export function rowId(given: string | number): number | null {
  const id = typeof given === 'number' ? given : /^[1-9]\d{0,9}$/.test(given) ? Number(given) : 0
  return Number.isInteger(id) && id >= 1 && id <= int4Max ? id : null
}
