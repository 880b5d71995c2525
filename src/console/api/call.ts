import { addresses, type Operations } from './api.gen.ts'
import { ApiError } from './api-error.ts'
import { connection, session, waits } from './connection.ts'

/** The name of an operation, as in the endpoint table. */
export type OperationName = keyof Operations
export type ReplyOf<N extends OperationName> = Operations[N]['reply']

/** What a call sends: path parameters, query and JSON body, as the operation takes them. */
type InputOf<N extends OperationName> = Omit<Operations[N], 'reply'>
export type CallOptions<N extends OperationName> = InputOf<N> & { readonly ifMatch?: string; readonly ifNoneMatch?: '*'; readonly signal?: AbortSignal }
/** The options may be left out when nothing in them is required. */
export type OptionsArgument<N extends OperationName> = Record<string, never> extends InputOf<N> ? [options?: CallOptions<N>] : [options: CallOptions<N>]

interface Given {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly ifMatch?: string
  readonly ifNoneMatch?: '*'
  readonly signal?: AbortSignal
}

/**
 * Calls an operation of the gateway with the session of the person. Throws an ApiError for each refusal. A session that has ended also shows the dialog of the
 * shell, so that pages need not handle it.
 */
export async function api<N extends OperationName>(name: N, ...[options]: OptionsArgument<N>): Promise<ReplyOf<N>> {
  const { method, url, init } = requestOf(name, options)
  const response = await send(url, { ...init, method })
  const text = await response.text().catch((cause: unknown) => Promise.reject(unreachable(cause)))
  if (!response.ok) throw refusalOf(response, text)
  return (text === '' ? null : JSON.parse(text)) as ReplyOf<N>
}

/** Returns the address of a read, for a link that the browser follows itself, such as a download. */
export const addressOf = <N extends OperationName>(name: N, ...[options]: OptionsArgument<N>): string => requestOf(name, options).url

/** Returns the same call as a command for a terminal. */
export function curlOf<N extends OperationName>(name: N, ...[options]: OptionsArgument<N>): string {
  const { method, url, init } = requestOf(name, options)
  const body = typeof init.body === 'string' ? ` \\\n  -H 'content-type: application/json' \\\n  -d '${init.body.replaceAll("'", "'\\''")}'` : ''
  return `curl -b .brigade/cookies${method === 'GET' ? '' : ` -X ${method}`} '${location.origin}${url}'${body}`
}

function requestOf(name: OperationName, options: Given = {}): { method: string; url: string; init: RequestInit } {
  const [method = 'GET', template = '/'] = addresses[name].split(' ')
  const path = template.replace(/\{(\w+)\}/g, (_, part: string) => encodeURIComponent(String(options.path?.[part] ?? '')).replaceAll('%2F', '/'))
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(options.query ?? {})) if (value !== undefined && value !== null && value !== '') query.set(key, String(value))
  const headers: Record<string, string> = { accept: 'application/json' }
  if (options.body !== undefined) headers['content-type'] = 'application/json'
  if (options.ifMatch !== undefined) headers['if-match'] = options.ifMatch
  if (options.ifNoneMatch !== undefined) headers['if-none-match'] = options.ifNoneMatch
  const body = options.body === undefined ? {} : { body: JSON.stringify(options.body) }
  const signal = options.signal === undefined ? {} : { signal: options.signal }
  return { method, url: query.size === 0 ? path : `${path}?${query}`, init: { headers, credentials: 'same-origin', ...body, ...signal } }
}

/** Sends a request and remembers whether the gateway answers. Throws an ApiError when it does not. */
export async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init)
    connection.set('online')
    return response
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw unreachable(cause)
  }
}

/** Returns the error of a request that the gateway did not answer. */
export function unreachable(cause: unknown): ApiError {
  connection.set('offline')
  return new ApiError('The gateway does not answer. Check your connection; what you typed is kept.', { status: 0, code: 'network', cause })
}

/** Returns the error of a reply that is not a success. A 401 ends the session of this page. */
export function refusalOf(response: Response, text: string): ApiError {
  if (response.status !== 401) return errorOf(response, text)
  session.set('ended')
  return errorOf(response, text, 'Your session has ended. Sign in again; what you typed is kept.')
}

/** Returns the error that a reply of the gateway reports. `said` replaces its message. */
export function errorOf(response: Response, text: string, said?: string): ApiError {
  const { message, code } = envelopeOf(text)
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  if (response.status === 429 && Number.isFinite(retryAfter)) waits.set(Date.now() + retryAfter * 1000)
  return new ApiError(said ?? message ?? `The gateway answered ${response.status}.`, {
    status: response.status,
    code: code ?? 'unknown',
    requestId: response.headers.get('x-request-id'),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
  })
}

function envelopeOf(text: string): { message?: string; code?: string } {
  try {
    return (JSON.parse(text) as { error?: { message?: string; code?: string } }).error ?? {}
  } catch {
    return {}
  }
}
