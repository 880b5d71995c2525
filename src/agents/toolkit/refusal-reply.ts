import { AgentRevokedError, type BrigadeError } from './brigade-error.ts'

/**
 * The reply that says what an error says, as the gateway would have sent it: in the envelope that the SDKs of both families read, with
 * `x-should-retry` set for those that do not go by the status. An agent that is revoked is 401 `agent_revoked`, in code and message.
 */
export function refusalReply(error: BrigadeError): Response {
  const isRevoked = error instanceof AgentRevokedError
  const code = isRevoked ? 'agent_revoked' : error.code
  const message = isRevoked && !error.message.startsWith(`${code}:`) ? `${code}: ${error.message}` : error.message
  const status = isRevoked ? 401 : error.status
  const { type, error: said, ...evidence } = error.body
  const body = {
    type: 'error',
    error: { ...(typeof said === 'object' ? said : {}), type: errorType(status), code, message, param: null },
    ...evidence,
    ...(isRevoked ? { reason: code } : {}),
  }
  const headers = new Headers({ 'content-type': 'application/json', 'x-should-retry': String(!isRevoked && mayRetry(error)) })
  if (error.requestId !== null) headers.set('x-request-id', error.requestId)
  if (error.retryAfterS !== null) headers.set('retry-after', String(error.retryAfterS))
  return new Response(JSON.stringify(body), { status, headers })
}

function mayRetry({ shouldRetry, status }: BrigadeError): boolean {
  return shouldRetry ?? (status === 408 || status === 429 || status >= 500)
}

function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
