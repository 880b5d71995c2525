import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { StreamFault } from '../../chat/chat-stream.ts'

/** When a client may repeat a refused call. */
export interface RetryAdvice {
  readonly mayRetry: boolean
  /** The seconds after which a retry can help; null: not known. */
  readonly afterSeconds: number | null
}

/** Google's name of a status. */
const names: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
}

const nameOfStatus = (status: number): string => names[status] ?? (status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT')

/** A wait that no client waits for. It ends the retries of a client at a limit that no retry can pass. Decision 0874 gives the measurements. */
const neverSeconds = 86_400

const errorInfoType = 'type.googleapis.com/google.rpc.ErrorInfo'
const retryInfoType = 'type.googleapis.com/google.rpc.RetryInfo'
/** The `domain` of the reasons of this gateway. */
const domain = 'brigade'

/**
 * Returns an error as clients of Google's API read it: `{error: {code, message, status, details}}`. The gateway's own code is the reason in `ErrorInfo`, and
 * a 429 has the time of a retry in `RetryInfo`. `body` is a gateway envelope, or a provider's error of any shape.
 */
export function geminiErrorBody(body: JsonObject, status: number, advice?: RetryAdvice): Record<string, unknown> {
  const given = body['error']
  const error = isObject(given) ? given : {}
  const text = [error['message'], given, body['message'], body['detail']].find(said => typeof said === 'string' && said !== '')
  const { error: _same, details: evidence, ...others } = body
  const own = objectsOf(error['details'])
  const { code } = error
  const reason = typeof code === 'string' && code !== '' ? code : 'upstream_client_error'
  return {
    ...others,
    error: {
      code: status,
      message: text ?? 'The request was refused.',
      status: typeof error['status'] === 'string' ? error['status'] : nameOfStatus(status),
      details: own.length > 0 ? own : detailsOf(status, reason, advice),
      ...(isObject(evidence) ? { evidence } : {}),
    },
  }
}

function detailsOf(status: number, reason: string, advice: RetryAdvice | undefined): readonly JsonObject[] {
  const info = { '@type': errorInfoType, reason, domain }
  if (status !== 429 || advice === undefined) return [info]
  const seconds = advice.afterSeconds ?? (advice.mayRetry ? 1 : neverSeconds)
  return [info, { '@type': retryInfoType, retryDelay: `${Math.max(1, Math.ceil(seconds))}s` }]
}

/** The status of an error inside a stream, by its type. */
const statusByType: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  rate_limit_error: 429,
  // Clients repeat a 429 inside a stream, and no retry can pass a limit that has ended one.
  billing_error: 402,
  overloaded_error: 503,
}

/** Returns the error that ends a stream. */
export function faultBody({ message, type, code }: StreamFault): Record<string, unknown> {
  const status = statusByType[type ?? ''] ?? 500
  return geminiErrorBody({ error: { message, code: code ?? type ?? 'upstream_stream_error' } }, status)
}
