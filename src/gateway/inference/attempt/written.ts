import { fail } from '../../../platform/errors.ts'

/**
 * What is written to a provider, of what a caller sent. A body that cannot be written is its sender's mistake and says nothing about the
 * route. Throws `bad_request`, and what `write` throws.
 */
export function written<T>(write: () => T): T {
  try {
    return write()
  } catch (cause) {
    throw cause instanceof RangeError ? fail('bad_request', { message: 'The body is nested too deeply.', cause }) : cause
  }
}
