import { AgentRevokedError, BrigadeError, errorOf } from './brigade-error.ts'
import { gatewayAddress, isAtGateway } from './gateway-address.ts'
import { type Credential, checkedSecret, sourceOf, type TokenSource } from './token-source.ts'

/** Options of the `fetch` that adds the agent's credential to each request. To sign a request means to add that credential. */
export interface AgentFetchOptions {
  /**
   * The address of the gateway. Only requests to this address are signed, and other requests go out unchanged. Paths such as `/v1/models` are
   * resolved against it. When it is left out, every request is signed.
   */
  readonly baseUrl?: string | undefined
  /** The User-Agent that is sent when the caller sets none. Browsers do not send it. */
  readonly userAgent?: string | undefined
  /** The agent in whose name an API key calls (`x-br-agent-id`). A token names its agent by itself. */
  readonly agentLabel?: string | undefined
}

/** A value for frameworks that require a key. The fetch wrapper replaces it with the token. */
export const placeholderKey = 'set-by-brigade-fetch'

const standardUserAgent = 'brigade-agents/0.1'
/** Headers that carry keys. Adapters of other providers put the placeholder into these headers. */
const keyHeaders = ['x-api-key', 'api-key', 'x-goog-api-key']

/**
 * Returns a `fetch` that signs each request with the bearer of `credential`, whatever Authorization the caller sets. After a 401 that a new token may
 * resolve, it repeats the request with a new token, if the body can be sent again. When it gets no token, it returns the error as a reply in the
 * gateway's form, so that the calling SDK handles it as usual. A revoked agent gets a 401 `agent_revoked` that no SDK repeats, and later calls send
 * no request. Every other reply is returned unchanged. Throws TypeError for options that cannot be sent. Decision 0261 says why.
 */
export function agentFetch(credential: Credential, inner: typeof fetch = fetch, options: AgentFetchOptions = {}): typeof fetch {
  checkHeaders(options)
  const source = sourceOf(credential)
  const baseUrl = options.baseUrl === undefined ? null : gatewayAddress(options.baseUrl)
  return async (input, init) => {
    const target = baseUrl !== null && typeof input === 'string' && input.startsWith('/') ? `${baseUrl}${input}` : input
    if (baseUrl !== null && !isAtGateway(baseUrl, target)) return inner(target, init)
    const request = sendableOf(target, init)
    const sendWith = async (token: string): Promise<Response> => {
      const [url, sent] = request.next()
      return inner(url, { ...sent, headers: signedHeaders(request.headers, checkedSecret(token), options) })
    }
    try {
      const token = await unlessAborted(source.getToken(), request.signal)
      const reply = await sendWith(token)
      const refusal = await refusalOf(reply)
      if (refusal !== 'token') return refusal === 'revoked' ? revokedReply(reply, source) : reply
      const renewed = unlessAborted(source.getToken({ forceRefresh: true, refused: token }), request.signal)
      // This request cannot be sent again, so the refusal is returned. The next call gets the new token.
      if (!request.mayRepeat)
        return await renewed.then(
          () => reply,
          () => reply,
        )
      const fresh = await renewed
      if (fresh === token) return reply
      await reply.body?.cancel()
      const second = await sendWith(fresh)
      return (await refusalOf(second)) === 'revoked' ? revokedReply(second, source) : second
    } catch (error) {
      if (error instanceof BrigadeError) return refusalReply(error)
      throw error
    }
  }
}

const reasonInChallenge = /error_description="(\w+)"/

/**
 * Returns what is wrong with the credential: `revoked` when the agent is revoked, `token` when only this token is invalid. Returns null for every
 * other reply.
 */
async function refusalOf(reply: Response): Promise<'revoked' | 'token' | null> {
  if (reply.status !== 401) return null
  const challenge = reply.headers.get('www-authenticate') ?? ''
  const reason = reasonInChallenge.exec(challenge)?.[1] ?? (await reasonInBody(reply))
  if (reason === 'agent_revoked') return 'revoked'
  return reason !== null || challenge.includes('invalid_token') ? 'token' : null
}

/** Reads the reason from the body, because browsers hide the challenge header. */
async function reasonInBody(reply: Response): Promise<string | null> {
  const body: unknown = await reply
    .clone()
    .json()
    .catch(() => null)
  const reason = typeof body === 'object' && body !== null && 'reason' in body ? body.reason : null
  return typeof reason === 'string' ? reason : null
}

async function revokedReply(reply: Response, source: TokenSource): Promise<Response> {
  const said = await errorOf(reply)
  // A reply without a body, for example to HEAD, gives the reason only in a header.
  const error = said instanceof AgentRevokedError ? said : new AgentRevokedError({ ...said, code: 'agent_revoked', message: 'This agent has been revoked.' })
  source.noteRevoked?.(error)
  return refusalReply(error)
}

/** Throws TypeError unless the options are valid and can be sent in headers. */
function checkHeaders({ agentLabel, userAgent }: AgentFetchOptions): void {
  if (agentLabel !== undefined && !/^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$/.test(agentLabel))
    throw new TypeError('agentLabel must be 1 to 100 characters: letters, digits, space and . _ : @ / -')
  if (userAgent !== undefined && !/^[\x20-\x7e]+$/.test(userAgent)) throw new TypeError('userAgent must be printable ASCII.')
}

function signedHeaders(given: Headers, token: string, { userAgent = standardUserAgent, agentLabel }: AgentFetchOptions): Headers {
  const headers = new Headers(given)
  for (const name of keyHeaders) if (headers.get(name) === placeholderKey) headers.delete(name)
  headers.set('authorization', `Bearer ${token}`)
  if (!headers.has('user-agent') && !isBrowser()) headers.set('user-agent', userAgent)
  if (agentLabel !== undefined && !headers.has('x-br-agent-id')) headers.set('x-br-agent-id', agentLabel)
  return headers
}

/** Returns whether the program runs in a browser. A browser sends its own User-Agent, and a custom header would cause a preflight request. */
const isBrowser = (): boolean => 'document' in globalThis || 'importScripts' in globalThis

/** Waits for a token until the signal of the waiting call fires. The mint itself continues for other callers. */
function unlessAborted<T>(waiting: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return waiting
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    waiting.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/**
 * Returns the reply that the gateway would have sent for an error. The SDKs of OpenAI and Anthropic can both read its body. `x-should-retry` is set
 * for SDKs that do not decide by the status. For a revoked agent, the reply is 401 with `agent_revoked` in code and message.
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

/** A request that may have to be sent twice. */
export interface Sendable {
  /** The headers that the caller set. */
  readonly headers: Headers
  readonly signal: AbortSignal | null
  /** False for streams, because they can be read only once. */
  readonly mayRepeat: boolean
  /** Returns the arguments of one fetch. Each call returns a request that can be sent. */
  next(): [target: string | URL | Request, init: RequestInit]
}

/** Returns the request that these arguments of fetch describe. */
export function sendableOf(target: string | URL | Request, init: RequestInit = {}): Sendable {
  const request = typeof target === 'object' && 'clone' in target ? target : null
  const isOfRequest = request !== null && (init.body === undefined || init.body === null)
  return {
    headers: new Headers(init.headers ?? request?.headers),
    signal: init.signal ?? request?.signal ?? null,
    mayRepeat: isOfRequest || isKept(init.body),
    // The request is cloned for each use, because a request whose body was sent cannot be cloned.
    next: () => [isOfRequest && request.body !== null ? request.clone() : target, init],
  }
}

/** Returns whether the body can be sent again. */
function isKept(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true
  const kinds = [ArrayBuffer, Blob, FormData, URLSearchParams]
  return ArrayBuffer.isView(body) || kinds.some(kind => body instanceof kind)
}
