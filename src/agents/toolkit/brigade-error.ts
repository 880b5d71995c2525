/** A refusal of the gateway, with the fields of its envelope. Programs branch on `code`. `message` says what to do. */
export class BrigadeError extends Error {
  override readonly name: string = 'BrigadeError'
  readonly status: number
  readonly code: string
  /** The `x-request-id` of the reply, for questions to the operator. */
  readonly requestId: string | null
  /** Seconds until a retry makes sense. Null when the gateway did not say. */
  readonly retryAfterS: number | null
  /** The value of `x-should-retry`. Null when the header is missing. */
  readonly shouldRetry: boolean | null
  /** The whole body: `error`, and further fields such as `reason`, `cap_inr` or the current `etag`. */
  readonly body: Readonly<Record<string, unknown>>

  constructor(fields: {
    status: number
    code: string
    message: string
    requestId?: string | null
    retryAfterS?: number | null
    shouldRetry?: boolean | null
    body?: Readonly<Record<string, unknown>>
  }) {
    super(fields.message)
    this.status = fields.status
    this.code = fields.code
    this.requestId = fields.requestId ?? null
    this.retryAfterS = fields.retryAfterS ?? null
    this.shouldRetry = fields.shouldRetry ?? null
    this.body = fields.body ?? {}
  }
}

/** The error for an agent that was ended permanently. Every later call fails in the same way, so the program should stop. `code` is `agent_revoked`. */
export class AgentRevokedError extends BrigadeError {
  override readonly name = 'AgentRevokedError'
}

/**
 * Reads the body of a reply that is not ok, and returns its error. A body that the gateway did not send, such as a proxy's error page, becomes the
 * code `http_<status>`.
 */
export async function errorOf(reply: Response): Promise<BrigadeError> {
  const text = await reply.text()
  const body = recordOf(text)
  const envelope = asRecord(body['error'])
  // The OAuth endpoints use the two fields of RFC 6749 for their errors.
  const [oauthCode, oauthMessage] = typeof body['error'] === 'string' ? [body['error'], body['error_description']] : []
  const shouldRetry = reply.headers.get('x-should-retry')
  const fields = {
    status: reply.status,
    code: textOr(oauthCode ?? envelope['code'], `http_${reply.status}`),
    message: textOr(oauthMessage ?? envelope['message'], `The gateway answered with status ${reply.status}.`),
    requestId: reply.headers.get('x-request-id'),
    retryAfterS: retryAfterOf(reply.headers),
    shouldRetry: shouldRetry === null ? null : shouldRetry === 'true',
    body,
  }
  return isRevoked(fields.code, body) ? new AgentRevokedError({ ...fields, code: 'agent_revoked' }) : new BrigadeError(fields)
}

/** Returns whether a refusal says that the agent is revoked. A stream or tool says so in `code`, and a 401 says so in `reason`. */
export function isRevoked(code: string, body: Readonly<Record<string, unknown>>): boolean {
  return code === 'agent_revoked' || body['reason'] === 'agent_revoked'
}

/** Returns Retry-After in seconds. A proxy may send a date. The date is compared with the `date` header of the reply. */
function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return Number.isFinite(Number(text)) ? Number(text) : null
  const atMs = /^[a-z]{3,9},? /i.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) return null
  const saidMs = Date.parse(headers.get('date') ?? '')
  return Math.max(0, Math.ceil((atMs - (Number.isNaN(saidMs) ? Date.now() : saidMs)) / 1000))
}

function recordOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return {}
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise
}
