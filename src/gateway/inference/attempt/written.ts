import { fail } from '../../../platform/errors.ts'

/**
 * Calls `write`, which turns the caller's body into the request to a provider, and returns its result. If the body is nested too deeply, throws
 * `bad_request`, and the route does not count as failed. All other errors of `write` are thrown unchanged.
 */
export function written<T>(write: () => T): T {
  try {
    return write()
  } catch (cause) {
    throw cause instanceof RangeError ? fail('bad_request', { message: 'The body is nested too deeply.', cause }) : cause
  }
}
