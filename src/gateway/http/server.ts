import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import express, { type Request, type Response } from 'express'
import type { AnyRow } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { skipBody } from './bodies/pieces.ts'
import { refuseUnread, serverTimes } from './connections.ts'
import type { ConsoleSite } from './console/console-site.ts'
import type { Binding, EdgeDeps } from './edge.ts'
import { pathHint } from './path-hint.ts'
import { writeError } from './replies/reply-writer.ts'
import { HotRoutes } from './rows/hot-routes.ts'
import { serveRow } from './rows/serve-row.ts'
import { isWellEncoded } from './url-text.ts'

/** Writes `/v1/models/{id+}/stats` as express 5 does: `/v1/models/*id/stats`. A colon of the path itself is escaped. */
function expressPath(path: string): string {
  return path
    .replaceAll(':', '\\:')
    .replace(/\{(\w+)\+\}/g, '*$1')
    .replace(/\{(\w+)\}/g, ':$1')
}

/**
 * Returns the sort key of a path; express tries paths in this order. Literal segments come first, so that `/star/{slug}` does not match `/{slug}/monitor`.
 * A path that continues after `{id+}`, also within the segment, comes before a path that ends with `{id+}`, because the latter also matches the longer path. A test of the endpoint
 * table shows that no two paths clash.
 */
function specificity(path: string): string {
  const segments = path.split('/').map(segment => (segment.includes('+}') ? (segment.endsWith('}') ? '2' : '20') : segment.includes('{') ? '1' : '0'))
  return `${segments.join('')}3`
}

/** The paths that use JSON-RPC and are not rows. */
export interface McpPaths {
  /** Serves /mcp. */
  main(request: IncomingMessage, response: ServerResponse): void
  /** Serves /mcp/servers/{slug}. */
  ofServer(slug: string, request: IncomingMessage, response: ServerResponse): void
  /** Serves /orgs/{id}/mcp; null when there is no such path. */
  readonly ofOrg: ((orgId: number, request: IncomingMessage, response: ServerResponse) => void) | null
}

/** Makes the server for all endpoints of the table, for MCP and for the console. Unknown paths get 404 and wrong methods 405, in the error envelope. */
export function createEdge(bindings: readonly Binding[], deps: EdgeDeps, mcp: McpPaths, site: ConsoleSite): Server {
  const hot = new HotRoutes(bindings)
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  const toMcp = (request: IncomingMessage, response: ServerResponse): void => deps.watch?.strayed('/mcp', request, response)
  app.all('/mcp', (request, response) => {
    toMcp(request, response)
    if (!site.explainMcp(request, response, deps)) mcp.main(request, response)
  })
  app.all(['/', '/console', '/console/*below'], (request, response, next) => {
    if (site.serve(request.path, request, response, deps)) deps.watch?.strayed('other', request, response)
    else next()
  })
  app.all('/mcp/servers/:slug', (request, response) => {
    toMcp(request, response)
    mcp.ofServer(request.params.slug, request, response)
  })
  const { ofOrg } = mcp
  if (ofOrg)
    app.all('/orgs/:id/mcp', (request, response, next) => {
      const id = rowId(request.params.id)
      if (id === null) next()
      else {
        toMcp(request, response)
        ofOrg(id, request, response)
      }
    })
  const paths = new Map<string, Binding[]>()
  for (const binding of bindings) {
    const path = binding.at.split(' ')[1] ?? ''
    paths.set(path, [...(paths.get(path) ?? []), binding])
  }
  const isHidden = (rows: readonly Binding[] | undefined): boolean => rows?.some(row => row.access.operator === true) ?? false
  const known = new Set([...[...paths.keys()].filter(path => !isHidden(paths.get(path))), '/mcp'])
  const missing = (request: Request, response: Response): void => miss(request, response, deps, fail('not_found', { message: pathHint(request.path, known) }))
  for (const [path, rows] of [...paths].sort(([a], [b]) => specificity(a).localeCompare(specificity(b)))) {
    const byMethod = new Map(rows.map(row => [row.at.split(' ')[0] ?? '', row]))
    const allow = [...byMethod.keys()].join(', ')
    app.all(expressPath(path), (request: Request, response: Response) => {
      const binding = byMethod.get(request.method) ?? (request.method === 'HEAD' ? forHead(byMethod.get('GET')) : undefined)
      if (!binding && isHidden(rows)) return missing(request, response)
      if (!binding) return miss(request, response, deps, wrongMethod(allow), rows[0]?.row)
      void serveRow(binding, paramsOf(request), queryTextOf(request.url), request, response, deps)
    })
  }
  app.use(missing)
  // Replies with the error envelope, because express would reply with its own HTML.
  app.use((_error: unknown, request: Request, response: Response, _next: unknown) => miss(request, response, deps, malformed()))
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (isQueued(response)) {
      request.socket.destroy()
      return
    }
    deps.connections.begun(request, response)
    if (deps.isRetiring()) response.shouldKeepAlive = false
    if (request.headers.origin !== undefined && deps.cors.answers(request, response)) {
      skipBody(request)
      return
    }
    const isWellFormed = isWellEncoded(request.url ?? '')
    const found = isWellFormed ? hot.match(request.method ?? '', request.url ?? '') : null
    if (!isWellFormed) miss(request, response, deps, malformed())
    else if (found) void serveRow(found.binding, found.params, found.query, request, response, deps)
    else app(request, response)
  }
  const server = createServer({ noDelay: true, ...serverTimes }, serve)
  deps.connections.watch(server)
  // Without this listener, Node.js would send `100 Continue` to every client. With it, the gateway sends it only when it is about to read the body.
  server.on('checkContinue', serve)
  server.on('clientError', (error, socket) => refuseUnread(error, socket))
  return server
}

/**
 * Returns true when a response waits for an earlier one on its connection. A waiting response emits no event when its client disconnects, so bounds that
 * need that event would fail. The gateway therefore closes a connection that sends a request before the previous reply has ended. Decision 0434 says why.
 */
const isQueued = (response: ServerResponse): boolean => response.socket === null

const malformed = (): Error => fail('bad_request', { message: 'The path or query has a "%" without two hex digits, or bytes that are no UTF-8.' })

const wrongMethod = (allow: string): Error => fail('method_not_allowed', { message: `This path takes ${allow} only.`, headers: { allow } })

const forHead = (get: Binding | undefined): Binding | undefined => (get?.row.hasEffect ? undefined : get)

function paramsOf(request: Request): Record<string, string> {
  const params: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.params)) params[name] = Array.isArray(value) ? value.join('/') : String(value)
  return params
}

function queryTextOf(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

/** Clients of Google's API use all paths below /v1beta, and read errors in its envelope only. */
const ofGoogle: Pick<AnyRow, 'clients'> = { clients: 'gemini' }

function miss(
  request: IncomingMessage,
  response: ServerResponse,
  deps: EdgeDeps,
  error: Error,
  row: Pick<AnyRow, 'clients'> | undefined = request.url?.startsWith('/v1beta/') === true ? ofGoogle : undefined,
): void {
  deps.watch?.strayed('other', request, response)
  const requestId = deps.ids.requestId()
  response.setHeader('x-request-id', requestId)
  deps.watch?.refused(writeError(response, error, row).code, requestId)
}
