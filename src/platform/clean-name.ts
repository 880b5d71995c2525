import { fail } from './errors.ts'

const nameShape = /^[^\p{Cc}]{1,100}$/u

/** A name that a person typed, without spaces around it: 1 to 100 characters, no control characters. Throws `bad_name`. */
export function cleanName(text: string): string {
  const name = text.trim()
  if (!nameShape.test(name)) throw fail('bad_name', { message: 'A name has 1 to 100 characters and no control characters.' })
  return name
}
