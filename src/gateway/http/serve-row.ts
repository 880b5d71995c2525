import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Cancellation } from '../../platform/cancellation.ts'
import { DatabaseUnavailableError } from '../../platform/db.ts'
import type { AnyRow, At, AuthKind, Call } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/ids.ts'
import { CallCutError, type Inflight } from '../../platform/inflight.ts'
import type { Log } from '../../platform/log.ts'
import { type AccessRule, type BearerPrincipal, mayCall, type Principal } from '../../platform/principal.ts'
import { agentIdHeader, agentLabelOf } from './call-context.ts'
import { writeError, writeReply } from './reply-writer.ts'
import { ClientGoneError, parseJsonBody, readBody } from './request-body.ts'
import { parseInput } from './validate.ts'

type ParsedInput = ReturnType<typeof parseInput>

/** One address of a row: the row itself, or its twin with a credential and rule of its own. */
export interface Binding {
  readonly name: string
  readonly row: AnyRow
  readonly at: At
  readonly auth: AuthKind
  readonly access: AccessRule
}

/** What the HTTP edge needs of the rest; app.ts gives it. */
export interface EdgeDeps {
  readonly services: object
  readonly ids: Ids
  readonly log: Log
  readonly inflight: Inflight
  readonly baseUrl: () => string
  readonly bodyLimitBytes: number
  readonly inferenceBodyLimitBytes: number
  /** Key or agent token of the request. Throws 401; a failure of ours is never a 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
  /** Who may call a session row: the signed-in user, or an agent that reads. Throws `no_session`, `forbidden`, `foreign_origin`. */
  authenticateSession(method: string, headers: IncomingHttpHeaders): Principal | Promise<Principal>
  /** Address of the client; behind trusted proxies the one that they report. */
  clientIp(request: IncomingMessage): string
  /** Looks at the kill switch once more, after the call was registered as in flight. */
  recheck(principal: Principal): void
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /** True while the process drains: new calls are turned away. */
  isDraining(): boolean
}

/**
 * Serves one request on one row: credential, rate, rule, body, handler, reply. The same function serves the rows that are matched
 * before express and those that express matched. It never throws.
 */
export async function serveRow(
  binding: Binding,
  params: Readonly<Record<string, string>>,
  query: string,
  request: IncomingMessage,
  response: ServerResponse,
  deps: EdgeDeps,
): Promise<void> {
  const requestId = deps.ids.requestId()
  const cancellation = new Cancellation()
  response.on('close', () => {
    if (!response.writableFinished) cancellation.abort(new ClientGoneError())
  })
  let unregister: (() => void) | undefined
  let principal: Principal | null = null
  try {
    if (deps.isDraining()) throw fail('shutting_down', { headers: { connection: 'close' } })
    const signedIn = authenticate(binding.auth, request, deps)
    principal = signedIn instanceof Promise ? await signedIn : signedIn
    if (principal !== null) {
      unregister = deps.inflight.register(ownersOf(principal), cancellation)
      deps.recheck(principal)
      if (principal.kind !== 'session') {
        const rate = deps.takeRate(principal)
        if (rate !== undefined) await rate
      }
      const verdict = mayCall(principal, binding.access)
      if (!verdict.ok) throw fail('forbidden', { message: verdict.why })
    }
    binding.row.requires?.(deps.services)
    const call: Call = {
      principal,
      requestId,
      agentLabel: agentLabelOf(request.headers[agentIdHeader]),
      signal: cancellation,
      baseUrl: deps.baseUrl(),
      clientIp: () => deps.clientIp(request),
    }
    const read = readInput(binding.row, params, query, request, deps)
    const input = read instanceof Promise ? await read : read
    const result = binding.row.handle(deps.services, input, call)
    const value = result instanceof Promise ? await result : result
    const written = writeReply(response, value, binding.row.status ?? 200, requestId)
    if (written !== undefined) await written
  } catch (thrown) {
    report(thrown, binding, requestId, principal, request, response, deps)
  } finally {
    unregister?.()
  }
}

function authenticate(auth: AuthKind, request: IncomingMessage, deps: EdgeDeps): Principal | null | Promise<Principal> {
  const { headers, method = '' } = request
  switch (auth) {
    case 'public':
    case 'signature':
      return null
    case 'key':
      return deps.authenticate(headers)
    case 'session':
      return deps.authenticateSession(method, headers)
    case 'key-or-session':
      return headers.authorization === undefined ? deps.authenticateSession(method, headers) : deps.authenticate(headers)
  }
}

/** Under whom a call in flight is registered. */
export function ownersOf(principal: Principal): { agentIds: readonly number[]; keyId: number | null } {
  switch (principal.kind) {
    case 'agent':
      return { agentIds: principal.ancestorIds.length === 0 ? [principal.agentId] : [principal.agentId, ...principal.ancestorIds], keyId: principal.keyId }
    case 'key':
      return { agentIds: [], keyId: principal.keyId }
    case 'session':
      return { agentIds: [], keyId: null }
  }
}

function readInput(
  row: AnyRow,
  params: Readonly<Record<string, string>>,
  query: string,
  request: IncomingMessage,
  deps: EdgeDeps,
): ParsedInput | Promise<ParsedInput> {
  const spec = row.input
  const parse = (body: unknown): ParsedInput => parseInput(spec, { path: params, query: spec.query ? queryOf(query) : {}, headers: request.headers, body })
  if (spec.body === undefined && spec.bodyKind === undefined) {
    request.resume()
    return parse(undefined)
  }
  const isBytes = spec.bodyKind === 'raw' || spec.bodyKind === 'inference'
  const limitBytes = spec.bodyLimitBytes ?? (spec.bodyKind === 'inference' ? deps.inferenceBodyLimitBytes : deps.bodyLimitBytes)
  if (spec.bodyKind !== 'raw') checkJsonType(request.headers['content-type'])
  return readBody(request, limitBytes).then(bytes => parse(isBytes ? bytes : parseJsonBody(bytes)))
}

function checkJsonType(contentType: string | undefined): void {
  // curl without -H sends a form type by default; callers of JSON APIs forget the header often, so only other explicit types are refused.
  if (
    contentType === undefined ||
    contentType.includes('json') ||
    contentType.startsWith('application/x-www-form-urlencoded') ||
    contentType.startsWith('text/plain')
  )
    return
  throw fail('unsupported_media_type', { message: `This endpoint takes application/json, not ${contentType.split(';')[0] ?? ''}.` })
}

function queryOf(query: string): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values[name]
    values[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return values
}

/** Says it to the client, and to the log when it is our fault. */
function report(
  thrown: unknown,
  binding: Binding,
  requestId: string,
  principal: Principal | null,
  request: IncomingMessage,
  response: ServerResponse,
  deps: EdgeDeps,
): void {
  if (thrown instanceof ClientGoneError) {
    response.destroy()
    return
  }
  if (!response.headersSent) response.setHeader('x-request-id', requestId)
  const error = writeError(response, translate(thrown))
  if (!request.complete) request.resume()
  if (error.status < 500) return
  const fields = {
    requestId,
    method: request.method ?? '',
    path: binding.row.at.split(' ')[1] ?? '',
    status: error.status,
    code: error.code,
    ...(principal === null ? {} : { orgId: principal.orgId }),
  }
  if (error.errorName === 'internal_error') deps.log.error('request failed', { ...fields, error: error.cause })
  else deps.log.warn('request failed', fields)
}

/** Failures that have a name of their own on the wire. */
export function translate(thrown: unknown): unknown {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof DatabaseUnavailableError) return fail('database_unavailable', { cause: thrown, retryAfterSeconds: 2 })
  if (thrown instanceof CallCutError) return cutError(thrown)
  return thrown
}

/** What a call that the gateway itself ended answers, when nothing has been sent yet. */
export function cutError(cut: CallCutError): GatewayError {
  switch (cut.reason) {
    case 'agent_revoked':
      return fail('invalid_api_key', { message: 'This agent has been revoked. Stop: its tokens work no more.', extra: { reason: 'agent_revoked' } })
    case 'key_revoked':
      return fail('invalid_api_key', { message: 'This key has been revoked.' })
    case 'agent_stale':
      return fail('database_unavailable', { message: 'The gateway cannot confirm that this agent is still active. Try again shortly.', retryAfterSeconds: 2 })
    case 'database_away':
      return fail('database_unavailable', { retryAfterSeconds: 2 })
    case 'shutdown':
      return fail('shutting_down')
  }
}
