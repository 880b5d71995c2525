import { fail } from '../../../platform/errors.ts'

/**
 * Returns the request to a provider that `write` makes from the caller's body. A body that cannot be written is the caller's mistake and says
 * nothing about the route. Throws `bad_request` and all errors of `write`.
 */
export function written<T>(write: () => T): T {
  try {
    return write()
  } catch (cause) {
    throw cause instanceof RangeError ? fail('bad_request', { message: 'The body is nested too deeply.', cause }) : cause
  }
}
