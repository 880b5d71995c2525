/** What the queries of searched lists have in common. */
import { z } from 'zod'
import { fail } from '../errors.ts'
import type { Principal } from '../security/principal.ts'
import { normalFormC } from './normal-form.ts'
import { int4Max, rowId } from './row-id.ts'

/** Maximum length of a text to search for: the maximum length of a name. */
const textMax = 100

/** Returns the schema of `q`. `what` says which part of a row the text is compared with. */
export function searchText(what: string) {
  return z
    .string()
    .trim()
    .min(1)
    .max(textMax)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
    .optional()
    .describe(`${what} At most ${textMax} characters. A page may be short, or empty, before the last one.`)
}

/** Returns a text to search for in the form in which names are stored. */
export const textOf = (q: string | undefined): string | undefined => (q === undefined ? undefined : normalFormC(q))

/** Returns the user id that `owner` names. Throws `bad_request`. */
export function ownerOf(owner: string | undefined, { userId }: Principal): number | undefined {
  if (owner !== 'me') return owner === undefined ? undefined : idIn(owner, 'owner', 'me')
  if (userId === null) throw fail('bad_request', { message: 'owner: this key belongs to no person. Send a user id.' })
  return userId
}

/** Returns the id in a field that takes an id or a word. Throws `bad_request`. */
export function idIn(text: string, field: string, word: string): number {
  const id = text.length > String(int4Max).length ? null : rowId(text)
  if (id === null) throw fail('bad_request', { message: `${field}: must be an id, or ${word}.` })
  return id
}
