import type { IncomingMessage, ServerResponse } from 'node:http'
import { anthropicRateHeader, anthropicTokenHeader, brHeader, openaiRateHeader, openaiTokenHeader, rateFieldHeader } from '../wire/response-headers.ts'

/** How long a browser may keep the reply to a preflight. */
const preflightSeconds = '600'

const methods = 'GET, POST, PUT, PATCH, DELETE'
/** Headers that every browser may send to /v1 and /v1beta. A browser may also send headers of the allowed families when its preflight names them. */
const namedHeaders = [
  'authorization',
  'content-type',
  'accept',
  'x-api-key',
  'x-goog-api-key',
  'x-goog-api-client',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
]
const headerFamilies = ['x-br-', 'anthropic-', 'openai-', 'x-stainless-']
const exposedHeaders = [
  ...[brHeader, openaiRateHeader, openaiTokenHeader, anthropicRateHeader, anthropicTokenHeader, rateFieldHeader].flatMap(Object.values<string>),
  'retry-after',
  'x-request-id',
  'x-should-retry',
  'etag',
].join(', ')
/** Paths that pages of every origin may read. */
const publicPaths = new Set(['/.well-known/mcp/server-card.json', '/mcp/server-card', '/.well-known/mcp-server-card', '/.well-known/ai-catalog.json'])

/**
 * Answers browsers for pages of other origins. /v1 and /v1beta accept a key and never a cookie. The console accepts the cookie, from its own origins only.
 * A request that is not allowed gets no CORS header, so the browser hides the reply from the page.
 */
export class Cors {
  readonly #apiOrigins: ReadonlySet<string>
  readonly #consoleOrigins: ReadonlySet<string>

  /** `apiOrigins` may contain `*`. */
  constructor(apiOrigins: readonly string[], consoleOrigins: readonly string[]) {
    this.#apiOrigins = new Set(apiOrigins)
    this.#consoleOrigins = new Set(consoleOrigins)
  }

  /** Sets the CORS headers on the reply to a request with an Origin. Returns true when the request was a preflight, which is then answered. */
  answers(request: IncomingMessage, response: ServerResponse): boolean {
    const path = pathOf(request.url ?? '')
    const allowed = this.#allowed(path, request.headers.origin ?? '')
    if (allowed === null) return false
    const isPreflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (!isPreflight && publicPaths.has(path)) return false
    response.setHeader('access-control-allow-origin', allowed.origin)
    if (allowed.origin !== '*') response.setHeader('vary', 'origin')
    if (allowed.withCredentials) response.setHeader('access-control-allow-credentials', 'true')
    if (!isPreflight) {
      response.setHeader('access-control-expose-headers', exposedHeaders)
      return false
    }
    response.setHeader('access-control-allow-methods', methods)
    response.setHeader('access-control-allow-headers', headersFor(request.headers['access-control-request-headers']))
    response.setHeader('access-control-max-age', preflightSeconds)
    response.writeHead(204)
    response.end()
    return true
  }

  #allowed(path: string, origin: string): { readonly origin: string; readonly withCredentials: boolean } | null {
    if (publicPaths.has(path)) return { origin: '*', withCredentials: false }
    if (path.startsWith('/v1/') || path.startsWith('/v1beta/')) {
      if (this.#apiOrigins.has('*')) return { origin: '*', withCredentials: false }
      return this.#apiOrigins.has(origin) ? { origin, withCredentials: false } : null
    }
    const isConsole = path === '/me' || path.startsWith('/me/') || path === '/auth' || path.startsWith('/auth/')
    return isConsole && this.#consoleOrigins.has(origin) ? { origin, withCredentials: true } : null
  }
}

/** Returns the named headers and the requested headers of allowed families. */
function headersFor(asked: string | undefined): string {
  const names = (asked ?? '')
    .toLowerCase()
    .split(',')
    .map(name => name.trim())
    .filter(name => /^[a-z0-9-]{1,64}$/.test(name) && headerFamilies.some(family => name.startsWith(family)))
  return [...new Set([...namedHeaders, ...names])].join(', ')
}

function pathOf(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}
