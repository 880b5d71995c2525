import { isObject } from '../../../../platform/values/json.ts'

/** The error type for a status, in the messages format. It is used if the error itself has no known type. */
const typeByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/**
 * Returns an error that clients of the messages format and clients of the gateway's envelope can both read: `{type:"error", error:{type, message, code}}`.
 * `body` is a gateway envelope, or a provider's error of any shape, whose `error.message` and `error.code` are kept.
 */
export function messagesErrorBody(body: Readonly<Record<string, unknown>>, status: number): Record<string, unknown> {
  const given = body['error']
  const error = isObject(given) ? given : {}
  const text = [error['message'], given, body['message'], body['detail']].find(said => typeof said === 'string' && said !== '')
  const type =
    status === 413 ? 'request_too_large' : (knownType(error['type']) ?? typeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'))
  const { code } = error
  // Clients of the format expect the details inside the error.
  const details = error['details'] === undefined && isObject(body['details']) ? { details: body['details'] } : {}
  const { type: _same, ...evidence } = body
  return {
    type: 'error',
    ...evidence,
    error: {
      ...error,
      ...details,
      type,
      message: text ?? 'The request was refused.',
      code: typeof code === 'string' && code !== '' ? code : 'upstream_client_error',
    },
  }
}

const typeWords: ReadonlySet<string> = new Set(['invalid_request_error', 'overloaded_error', 'api_error', ...Object.values(typeByStatus)])

/** Returns the type of an error if clients of the format know it, else null. */
export const knownType = (type: unknown): string | null => (typeof type === 'string' && typeWords.has(type) ? type : null)
