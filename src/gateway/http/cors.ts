import type { IncomingMessage, ServerResponse } from 'node:http'
import { brHeader } from '../wire/response-headers.ts'

/** How long a browser may keep the answer to a preflight. */
const preflightSeconds = '600'

const methods = 'GET, POST, PUT, PATCH, DELETE'
/** Headers that every browser may send to /v1, beside those that it asks for by name and that are of the allowed families. */
const namedHeaders = ['authorization', 'content-type', 'accept', 'x-api-key', 'idempotency-key', 'if-match', 'if-none-match', 'last-event-id']
const headerFamilies = ['x-br-', 'anthropic-', 'openai-', 'x-stainless-']
const exposedHeaders = [...Object.values(brHeader), 'retry-after', 'x-request-id', 'x-should-retry', 'etag'].join(', ')
/** Readable from any page. */
const publicPaths = new Set(['/.well-known/mcp/server-card.json', '/mcp/server-card', '/.well-known/mcp-server-card', '/.well-known/ai-catalog.json'])

/**
 * Answers browsers for pages of other origins. /v1 takes a key in a header and never a cookie; the console takes the cookie, from its
 * own origins. Whatever is not allowed gets no header at all, which is how a browser knows.
 */
export class Cors {
  readonly #apiOrigins: ReadonlySet<string>
  readonly #consoleOrigins: ReadonlySet<string>

  /** `apiOrigins` may hold `*`. */
  constructor(apiOrigins: readonly string[], consoleOrigins: readonly string[]) {
    this.#apiOrigins = new Set(apiOrigins)
    this.#consoleOrigins = new Set(consoleOrigins)
  }

  /** For a request with an Origin: sets the headers of its reply, whatever that will be. True: it was a preflight, and is answered. */
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
    if (path.startsWith('/v1/')) {
      if (this.#apiOrigins.has('*')) return { origin: '*', withCredentials: false }
      return this.#apiOrigins.has(origin) ? { origin, withCredentials: false } : null
    }
    const isConsole = path === '/me' || path.startsWith('/me/') || path === '/auth' || path.startsWith('/auth/')
    return isConsole && this.#consoleOrigins.has(origin) ? { origin, withCredentials: true } : null
  }
}

/** The named headers, and of those that are asked for the ones of allowed families, as names only. */
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
