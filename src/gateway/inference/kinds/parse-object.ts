import { fail } from '../../../platform/errors.ts'

/** The body as a JSON object. Throws `bad_request`. */
export function parseObject(bytes: Buffer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw fail('bad_request', { message: bytes.length === 0 ? 'The body is empty; send a JSON object.' : 'The body is not valid JSON.', cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fail('bad_request', { message: 'The body must be a JSON object.' })
  return value as Record<string, unknown>
}
