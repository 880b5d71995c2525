/** A refusal of the gateway, or a failure to reach it. `message` is a sentence for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status. 0 when the gateway did not answer. */
  readonly status: number
  /** The code of the error table, such as `duplicate_key_name`. `network` when the gateway did not answer. */
  readonly code: string
  readonly requestId: string | null
  /** After this time the request may be sent again. Null when the gateway names none. */
  readonly retryAfterSeconds: number | null

  constructor(message: string, facts: { status: number; code: string; requestId?: string | null; retryAfterSeconds?: number | null; cause?: unknown }) {
    super(message, { cause: facts.cause })
    this.status = facts.status
    this.code = facts.code
    this.requestId = facts.requestId ?? null
    this.retryAfterSeconds = facts.retryAfterSeconds ?? null
  }
}

/** Returns the error as an ApiError. An error of the console itself keeps its message. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(error instanceof Error ? error.message : String(error), { status: -1, code: 'console', cause: error })
}

/** The longest wait for which the console sends a refused request again by itself. A minute of the gateway ends before. */
const waitMaxSeconds = 90

/** Returns after how many milliseconds a request that came too often (429) is sent again, or null when the person decides. It had no effect. */
export const tooOftenMs = ({ status, retryAfterSeconds: seconds }: ApiError): number | null =>
  status === 429 && seconds !== null && seconds <= waitMaxSeconds ? seconds * 1000 : null

/** Returns whether sending the request again can help: the gateway was away, or failed itself. */
export const mayPass = ({ status }: ApiError): boolean => status === 0 || status >= 500
