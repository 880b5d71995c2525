import { agentFetch } from './agent-fetch.ts'
import { gatewayAddress, isAtGateway } from './gateway-address.ts'
import { jsonOf, okReply } from './gateway-reply.ts'
import { isNetworkFailure } from './token-provider.ts'
import type { Credential } from './token-source.ts'

/** The address of a gateway and the credential of the caller. */
export interface GatewayOptions {
  /** Address without a path, such as https://gw.example.com. A slash at the end does not matter. */
  readonly baseUrl: string
  readonly credential: Credential
  /** Replaces the global fetch, for proxies and tests. */
  readonly fetch?: typeof fetch
}

/** One request below the base URL. */
export interface GatewayRequest {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  /** The body. It is sent unchanged. Use `json` for a value. */
  readonly body?: string | Uint8Array
  readonly json?: unknown
  readonly signal?: AbortSignal
}

/**
 * The management API of a gateway. Paths begin with a slash. Every reply that is not ok is thrown as BrigadeError. When there is no reply, the error
 * of fetch is thrown with the address in its message.
 */
export interface GatewayClient {
  readonly baseUrl: string
  /** Sends a request and returns the reply. Throws unless the reply is ok. */
  send(method: string, path: string, request?: GatewayRequest): Promise<Response>
  /** Returns the JSON of the reply. The caller names its type. */
  json<T>(method: string, path: string, request?: GatewayRequest): Promise<T>
}

/** Returns a client of the gateway at `baseUrl`. It connects with the first call. */
export function gatewayClient({ baseUrl: given, credential, fetch: inner }: GatewayOptions): GatewayClient {
  const baseUrl = gatewayAddress(given)
  const signed = agentFetch(credential, inner)
  const send = async (method: string, path: string, request: GatewayRequest = {}): Promise<Response> => {
    // A path such as `@other.example` would change the host of the address.
    const url = new URL(path.startsWith('/') ? `${baseUrl}${path}` : 'about:blank')
    if (!isAtGateway(baseUrl, url)) throw new TypeError('path must begin with a slash and stay below the address of the gateway.')
    for (const [name, value] of Object.entries(request.query ?? {})) if (value !== undefined) url.searchParams.set(name, wellFormed(name, String(value)))
    const body = request.json === undefined ? request.body : JSON.stringify(request.json)
    const reply = await signed(url, {
      method,
      redirect: 'manual',
      headers: { ...(request.json === undefined ? {} : { 'content-type': 'application/json' }), ...request.headers },
      ...(body === undefined ? {} : { body: body as NonNullable<RequestInit['body']> }),
      ...(request.signal === undefined ? {} : { signal: request.signal }),
    }).catch((error: unknown) => {
      throw error instanceof TypeError && isNetworkFailure(error) ? unreachable(baseUrl, error) : error
    })
    return okReply(baseUrl, reply)
  }
  return {
    baseUrl,
    send,
    json: async <T>(method: string, path: string, request?: GatewayRequest) => (await jsonOf(baseUrl, await send(method, path, request))) as T,
  }
}

/** Returns the text of a parameter. Throws TypeError for a lone surrogate. A URL cannot contain it, so the request would name something else. */
function wellFormed(name: string, text: string): string {
  if (/\p{Cs}/u.test(text)) throw new TypeError(`${name} has half a character (a surrogate without its pair).`)
  return text
}

/** Returns an error that names the address, because the error of fetch does not. */
function unreachable(baseUrl: string, cause: TypeError): TypeError {
  const inner = cause.cause
  const code = typeof inner === 'object' && inner !== null && 'code' in inner ? String(inner.code) : ''
  // The gateway closes the connection before it has read a body that is far too large, so its error reply may never arrive.
  if (['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code))
    return new TypeError(`fetch failed: the connection to ${baseUrl} was cut (${code}). Try again; a body that is far too large is cut each time.`, { cause })
  return new TypeError(`fetch failed: no gateway answers at ${baseUrl}. Is it running, and is that its address?`, { cause })
}
