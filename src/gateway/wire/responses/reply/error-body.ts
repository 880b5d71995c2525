/** The error type that clients of this API retry after the time in `retry-after`, however long it is. */
const retriedType = 'rate_limit_error'

/**
 * Returns an error for clients of the Responses API. A limit that no retry can pass, such as a spent budget, has the type `insufficient_quota`. Codex waits
 * for `retry-after` with any other type, and a budget may be spent for weeks. Decision 0766 gives the measurements.
 */
export function responsesErrorBody<T extends { readonly error: { readonly type: string } }>(body: T, mayRetry: boolean): T {
  return mayRetry || body.error.type !== retriedType ? body : { ...body, error: { ...body.error, type: 'insufficient_quota' } }
}
