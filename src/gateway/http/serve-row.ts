import type { IncomingMessage, ServerResponse } from 'node:http'
import { Cancellation } from '../../platform/cancellation.ts'
import type { AnyRow, Call } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { mayCall, type Principal } from '../../platform/principal.ts'
import { type TracePlace, traceFields } from '../../platform/tracing.ts'
import { isAct, performAct, recordForbidden } from './acts.ts'
import { agentIdHeader, agentLabelOf, idempotencyHeader, idempotencyKeyOf } from './call-context.ts'
import { actOf, authenticate, ownersOf, type RowRequest, refusalOfUnknown } from './caller.ts'
import type { Binding, EdgeDeps } from './edge.ts'
import { readForm } from './multipart.ts'
import { parseFormBody } from './oauth-wire.ts'
import { writeError, writeReply } from './reply-writer.ts'
import { ClientGoneError, parseJsonBody, readBody } from './request-body.ts'
import { translate } from './translate.ts'
import { parseInput } from './validate.ts'

type ParsedInput = ReturnType<typeof parseInput>

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
  const begunAt = deps.watch?.begun() ?? 0
  response.on('close', () => {
    if (!response.writableFinished) cancellation.abort(new ClientGoneError())
    deps.watch?.ended(binding, begunAt, response.headersSent ? response.statusCode : null)
  })
  const trace = deps.placeOf?.(request.headers)
  let unregister: (() => void) | undefined
  let principal: Principal | null = null
  try {
    if (deps.isDraining() && binding.row.always !== true) throw fail('shutting_down', { headers: { connection: 'close' } })
    const signedIn = authenticate(binding, request, response, deps)
    principal = signedIn instanceof Promise ? await signedIn : signedIn
    if (principal !== null) {
      unregister = deps.inflight.register(ownersOf(principal), cancellation)
      deps.recheck(principal)
      if (principal.kind === 'session') deps.countPerson(principal.userId)
      else {
        const rate = deps.takeRate(principal)
        if (rate !== undefined) await rate
      }
      const verdict = mayCall(principal, binding.access)
      if (!verdict.ok) {
        if (isAct(binding.row)) await recordForbidden(actOf({ binding, params, requestId, request, response }, principal, deps), deps)
        throw fail('forbidden', { message: verdict.why })
      }
    }
    binding.row.requires?.(deps.services)
    const idempotencyKey = binding.row.inference === true ? idempotencyKeyOf(request.headers[idempotencyHeader]) : undefined
    const call: Call = {
      principal,
      requestId,
      agentLabel: namesAgents(binding) ? agentLabelOf(request.headers[agentIdHeader]) : null,
      signal: cancellation,
      baseUrl: deps.baseUrl(),
      clientIp: () => deps.clientIp(request),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey, path: binding.at }),
      ...(trace === undefined ? {} : { trace }),
    }
    const read = readInput(binding.row, params, query, request, deps)
    const input = read instanceof Promise ? await read : read
    const result =
      principal !== null && isAct(binding.row)
        ? performAct(actOf({ binding, params, requestId, request, response }, principal, deps), deps, () => binding.row.handle(deps.services, input, call))
        : binding.row.handle(deps.services, input, call)
    const value = result instanceof Promise ? await result : result
    const written = writeReply(response, value, binding.row.status ?? 200, requestId, deps.streams)
    if (written !== undefined) await written
  } catch (thrown) {
    const refusal = principal === null ? await refusalOfUnknown(thrown, { binding, params, requestId, request, response }, deps) : thrown
    report(refusal, { binding, params, requestId, request, response }, principal, trace, deps)
  } finally {
    unregister?.()
  }
}

/** Only calls of keys are made in the name of an agent; elsewhere the header is one of many that nobody reads. */
const namesAgents = ({ auth }: Binding): boolean => auth === 'key' || auth === 'key-or-session'

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
  if (spec.bodyKind === 'multipart') return readForm(request, deps.formLimits).then(parse)
  const isBytes = spec.bodyKind === 'raw' || spec.bodyKind === 'inference'
  const limitBytes = spec.bodyLimitBytes ?? (spec.bodyKind === 'inference' ? deps.inferenceBodyLimitBytes : deps.bodyLimitBytes)
  if (spec.bodyKind === 'form') return readBody(request, limitBytes).then(bytes => parse(parseFormBody(bytes, request.headers['content-type'])))
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

/** A name that every object has, such as `constructor`, is a name like any other. */
function queryOf(query: string): Record<string, string | string[]> {
  const values = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values.get(name)
    values.set(name, before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value])
  }
  return Object.fromEntries(values)
}

/** Says it to the client, and to the log when it is our fault. */
function report(
  thrown: unknown,
  { binding, requestId, request, response }: RowRequest,
  principal: Principal | null,
  trace: TracePlace | undefined,
  deps: EdgeDeps,
): void {
  if (thrown instanceof ClientGoneError) {
    response.destroy()
    return
  }
  if (!response.headersSent) response.setHeader('x-request-id', requestId)
  const error = writeError(response, translate(thrown), binding.row)
  deps.watch?.refused(error.code)
  if (!request.complete) request.resume()
  if (error.status < 500) return
  const fields = {
    requestId,
    ...traceFields(trace),
    method: request.method ?? '',
    path: binding.row.at.split(' ')[1] ?? '',
    status: error.status,
    code: error.code,
    ...(principal === null ? {} : { orgId: principal.orgId }),
  }
  if (error.errorName === 'internal_error') deps.log.error('request failed', { ...fields, error: error.cause })
  else deps.log.warn('request failed', fields)
}
