import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { parseExactJson, wellFormed } from '../../wire/json/json-body.ts'
import { inferenceBounds } from '../../wire/json/json-scan.ts'

/** The most members of the outermost object. No format has a hundred. */
export const membersMax = 500

/** Refuses a body with more members than `membersMax`. Throws `bad_request`. */
export function checkMembers(body: Readonly<Record<string, unknown>>): void {
  const { length } = Object.keys(body)
  if (length > membersMax) throw fail('bad_request', { message: `The body has ${length} members. At most ${membersMax} are allowed.` })
}

/**
 * Returns the body as a JSON object within the bounds of inference. A number that a double cannot represent gets a replacement, as in
 * `parseExactJson`. Throws `bad_request`.
 */
export function parseObject(bytes: Buffer): Record<string, unknown> {
  const value = wellFormed(
    () => parseExactJson(bytes, inferenceBounds),
    bytes.length === 0 ? 'The body is empty; send a JSON object.' : 'The body is not valid JSON.',
  )
  if (!isObject(value)) throw fail('bad_request', { message: 'The body must be a JSON object.' })
  checkMembers(value)
  return value
}
