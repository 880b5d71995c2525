import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRow, Call } from '../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import { type TracePlace, traceFields } from '../../../platform/observe/tracing.ts'
import type { AccessRule, BearerPrincipal, Principal } from '../../../platform/security/principal.ts'
import { lookAhead, parseBodyInTurns, valueRoomBytes } from '../../wire/json/json-body.ts'
import { inferenceBounds, type JsonBounds, managementBounds } from '../../wire/json/json-scan.ts'
import { runIdOfHeaders } from '../../wire/runs/run-id.ts'
import type { Upload } from '../bodies/body-room.ts'
import { readForm } from '../bodies/multipart.ts'
import { skipBody } from '../bodies/pieces.ts'
import { ClientGoneError, checkJsonType, readBody, textBytes } from '../bodies/request-body.ts'
import { streamedBody } from '../bodies/streamed-body.ts'
import { actOf, authenticate, ownersOf, type RowRequest, refusalOfUnknown } from '../callers/caller.ts'
import type { Binding, EdgeDeps } from '../edge.ts'
import type { EndedRequest } from '../edge-watch.ts'
import { parseFormBody } from '../oauth-wire.ts'
import { writeError, writeReply } from '../replies/reply-writer.ts'
import { translate } from '../translate.ts'
import type { ActCall } from './audited-actions.ts'
import { agentIdHeader, agentLabelOf, cacheOf, conversationOf, idempotencyHeader, idempotencyKeyOf } from './call-context.ts'
import { handleRow, type ParsedInput, type RowRun, refusalOf } from './run-row.ts'
import { parseInput } from './validate.ts'

/** Serves one request to one row: authenticates the caller, runs `runRow`, and writes the reply. It never throws. */
export async function serveRow(
  binding: Binding,
  params: Readonly<Record<string, string>>,
  query: string,
  request: IncomingMessage,
  response: ServerResponse,
  deps: EdgeDeps,
): Promise<void> {
  const served = new ServedRow(binding, params, query, request, response, deps)
  let unregister: (() => void) | undefined
  try {
    if (deps.isDraining() && binding.row.always !== true) throw fail('shutting_down', { headers: { connection: 'close' } })
    const signedIn = authenticate(binding, request, response, deps)
    const principal = signedIn instanceof Promise ? await signedIn : signedIn
    served.principal = principal
    if (principal !== null) {
      unregister = deps.inflight.register(ownersOf(principal), served.cancellation)
      deps.recheck(principal)
    }
    const admitted = served.admit()
    if (admitted !== undefined) await admitted
    const refused = refusalOf(served, deps)
    if (refused !== null) throw await refused
    const call = served.call()
    const read = served.read()
    const value = await handleRow(served, read instanceof Promise ? await read : read, call, deps)
    const owner = {
      requestId: served.requestId,
      orgId: principal?.orgId ?? null,
      isBySession: principal?.kind === 'session',
      limited: served.limited,
      clients: binding.row.clients,
    }
    const written = writeReply(response, value, binding.row.status ?? 200, owner, deps)
    if (written !== undefined) await written
  } catch (thrown) {
    report(served.principal === null ? await refusalOfUnknown(thrown, served, deps) : thrown, served)
  } finally {
    unregister?.()
    served.handled()
  }
}

/**
 * One HTTP request to a row. It gives back its stream place when the response closes. It gives back its body room when the response has closed and the
 * handler has ended.
 */
class ServedRow implements RowRun, RowRequest, EndedRequest {
  readonly binding: Binding
  readonly params: Readonly<Record<string, string>>
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly deps: EdgeDeps
  readonly requestId: string
  readonly cancellation = new Cancellation()
  readonly trace: TracePlace | undefined
  principal: Principal | null = null
  /** The caller of an inference row whose request is counted against its rate. The reply shows what the caller has left. */
  limited: BearerPrincipal | null = null
  readonly #query: string
  readonly #begunAt: number
  #upload: Upload | null = null
  #isClosed = false
  #isHandled = false
  #giveStream: (() => void) | null = null
  #leaveRun: (() => void) | null = null

  constructor(binding: Binding, params: Readonly<Record<string, string>>, query: string, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps) {
    this.binding = binding
    this.params = params
    this.#query = query
    this.request = request
    this.response = response
    this.deps = deps
    this.requestId = deps.ids.requestId()
    this.#begunAt = deps.watch?.begun() ?? 0
    response.on('close', () => this.#closed())
    this.trace = deps.placeOf?.(request.headers)
  }

  get row(): AnyRow {
    return this.binding.row
  }

  get isProbe(): boolean {
    return this.binding.row.always === true
  }

  get access(): AccessRule {
    return this.binding.access
  }

  admit(): void | Promise<void> {
    const { principal, deps } = this
    if (principal === null) {
      if (this.row.always !== true) this.#admitConnection(null)
      return
    }
    if (principal.kind === 'session') deps.countPerson(principal.userId)
    else {
      if (showsRates(this.row)) this.limited = principal
      const rate = deps.takeRate(principal)
      if (rate !== undefined) return rate.then(() => this.#admitConnection(principal.orgId))
    }
    this.#admitConnection(principal.orgId)
  }

  call(): Call {
    const { binding, request, deps, principal, trace } = this
    const isInference = binding.row.inference === true
    const isInRun = isInference || binding.row.inRun === true
    const idempotencyKey = isInference ? idempotencyKeyOf(request.headers[idempotencyHeader]) : undefined
    return {
      principal,
      requestId: this.requestId,
      agentLabel: namesAgents(binding) ? agentLabelOf(request.headers[agentIdHeader]) : null,
      runId: isInRun ? runIdOfHeaders(request.headers) : null,
      runHeaders: isInRun ? request.headers : undefined,
      joinRun: isInRun ? runKey => this.#joinRun(runKey) : undefined,
      signal: this.cancellation,
      baseUrl: deps.baseUrl(),
      clientIp: () => deps.clientIp(request),
      conversation: isInference ? conversationOf(request.headers) : undefined,
      idempotencyKey,
      replyCache: isInference ? cacheOf(request.headers) : undefined,
      path: idempotencyKey === undefined ? undefined : binding.at,
      trace,
      holdStream: isInference && principal !== null ? () => this.#holdStream(principal.orgId) : undefined,
    }
  }

  read(): ParsedInput | Promise<ParsedInput> {
    const { row, params, request, response, deps } = this
    if (!hasBody(row)) return inputOf(row, params, this.#query, request, undefined)
    this.#upload = deps.bodies.open(this.principal?.orgId ?? null)
    return readInput(row, params, this.#query, { request, response, upload: this.#upload }, deps)
  }

  act(principal: Principal): ActCall {
    return actOf(this, principal, this.deps)
  }

  /**
   * Notes that the handler has ended. A handler can run longer than its response: it may read a provider's answer after the caller has left, or wait for
   * its turn to parse a heavy body.
   */
  handled(): void {
    this.#isHandled = true
    this.#leaveRun?.()
    this.#releaseBody()
  }

  #releaseBody(): void {
    if (this.#isClosed && this.#isHandled) this.#upload?.release()
  }

  #closed(): void {
    const { response, deps } = this
    this.#isClosed = true
    this.#releaseBody()
    this.#giveStream?.()
    if (!response.writableFinished) this.#cancel()
    deps.watch?.ended(this.binding, this.#begunAt, response.headersSent ? response.statusCode : null, this)
  }

  /** Tells the handler that its client has left. An exception of a listener is logged, because no client is there to receive it. */
  #cancel(): void {
    const { cancellation, deps, requestId, trace } = this
    cancellation.abort(new ClientGoneError())
    const error = cancellation.listenerError
    if (error !== null) deps.log.error('the end of an abandoned request failed', { requestId, ...traceFields(trace), error })
  }

  #holdStream(orgId: number): void {
    if (!this.response.destroyed) this.#giveStream ??= this.deps.streamPlaces.take(orgId)
  }

  #joinRun(runKey: string): void {
    this.#leaveRun ??= this.deps.inflight.joinRun(runKey, this.cancellation)
  }

  /** Throws `places_taken`. */
  #admitConnection(orgId: number | null): void {
    const refused = this.deps.connections.admit(this.request, orgId)
    if (refused !== null) throw refused
  }
}

/** Inference rows, and the token counts that belong to one of them. */
const showsRates = ({ inference, clients }: AnyRow): boolean => inference === true || clients === 'anthropic' || clients === 'gemini'

/** Only rows that take a key read the agent header. Other rows ignore it. */
const namesAgents = ({ auth }: Binding): boolean => auth === 'key' || auth === 'key-or-session'

const hasBody = ({ input }: AnyRow): boolean => input.body !== undefined || input.bodyKind !== undefined

function inputOf(row: AnyRow, params: Readonly<Record<string, string>>, query: string, request: IncomingMessage, body: unknown): ParsedInput {
  if (body === undefined) skipBody(request)
  return parseInput(row.input, { path: params, query: row.input.query ? queryOf(query) : {}, headers: request.headers, body })
}

interface Incoming {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upload: Upload
}

function readInput(
  row: AnyRow,
  params: Readonly<Record<string, string>>,
  query: string,
  { request, response, upload }: Incoming,
  deps: EdgeDeps,
): Promise<ParsedInput> {
  const { input: spec } = row
  if (spec.bodyKind === 'inference')
    return readInference(row, params, query, { request, response, upload }, spec.bodyLimitBytes ?? deps.inferenceBodyLimitBytes)
  const parse = (body: unknown): ParsedInput => inputOf(row, params, query, request, body)
  if (spec.bodyKind === 'stream') return Promise.resolve(parse(streamedBody(request, response, spec.bodyLimitBytes ?? deps.bodyLimitBytes)))
  if (spec.bodyKind === 'multipart') return readForm(request, response, deps.formLimits, upload).then(parse)
  const limitBytes = spec.bodyLimitBytes ?? deps.bodyLimitBytes
  const isJson = spec.bodyKind !== 'raw' && spec.bodyKind !== 'form'
  if (isJson) checkJsonType(request.headers)
  const read = readBody(request, response, limitBytes, upload, asItIs)
  switch (spec.bodyKind) {
    case 'raw':
      return read.then(parse)
    case 'form':
      return read.then(bytes => parse(parseFormBody(textBytes(bytes), request.headers['content-type'])))
    default:
      return read
        .then(bytes => jsonBytes(bytes, managementBounds, upload))
        .then(bytes => (bytes.length === 0 ? undefined : parseBodyInTurns(bytes, managementBounds)))
        .then(parse)
  }
}

const asItIs = (bytes: Buffer): Buffer => bytes

/** Reads the body of an inference row. Such rows are on the hot path, so the input is made where the last byte arrives, without another promise. */
function readInference(
  row: AnyRow,
  params: Readonly<Record<string, string>>,
  query: string,
  { request, response, upload }: Incoming,
  limitBytes: number,
): Promise<ParsedInput> {
  checkJsonType(request.headers)
  return readBody(request, response, limitBytes, upload, bytes => {
    const json = jsonBytes(bytes, inferenceBounds, upload)
    return json instanceof Promise ? json.then(text => inputOf(row, params, query, request, text)) : inputOf(row, params, query, request, json)
  })
}

/**
 * Returns the text of a JSON body, after it has taken room for the parsed values. A large text is first checked for how much memory its values need.
 * Rejects with `bodies_refused`.
 */
function jsonBytes(bytes: Buffer, bounds: JsonBounds, upload: Upload): Buffer | Promise<Buffer> {
  const text = textBytes(bytes)
  const ahead = lookAhead(text, bounds)
  return ahead === undefined ? weighed(text, bounds, upload) : weighedAfter(ahead, text, bounds, upload)
}

async function weighedAfter(ahead: Promise<void>, text: Buffer, bounds: JsonBounds, upload: Upload): Promise<Buffer> {
  await ahead
  return weighed(text, bounds, upload)
}

function weighed(text: Buffer, bounds: JsonBounds, upload: Upload): Buffer {
  const refused = upload.weigh(valueRoomBytes(text, bounds))
  if (refused !== null) throw refused
  return text
}

/** Builds the query from a Map, so that a name such as `constructor`, which every object has, is an ordinary name. */
function queryOf(query: string): Record<string, string | string[]> {
  const values = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values.get(name)
    if (Array.isArray(before)) before.push(value)
    else values.set(name, before === undefined ? value : [before, value])
  }
  return Object.fromEntries(values)
}

function setRates(response: ServerResponse, limited: BearerPrincipal, { row }: Binding, { rates }: EdgeDeps): void {
  const list: string[] = []
  rates.addTo(list, limited, row.clients === 'anthropic', null)
  for (let at = 0; at + 1 < list.length; at += 2) response.setHeader(list[at] as string, list[at + 1] as string)
}

/** Returns true for a call of a model that has no usage event, so that its refusal is counted instead. */
const isRefusal = ({ options }: GatewayError, { row }: Binding): boolean => row.inference === true && options.hasEvent !== true

/** Sends the error to the client, and logs it when the gateway is at fault. */
function report(thrown: unknown, { binding, requestId, request, response, principal, limited, trace, deps }: ServedRow): void {
  if (thrown instanceof ClientGoneError) {
    response.destroy()
    return
  }
  if (!response.headersSent) {
    response.setHeader('x-request-id', requestId)
    if (limited !== null) setRates(response, limited, binding, deps)
  }
  const error = writeError(response, translate(thrown), binding.row)
  deps.watch?.refused(error.code, requestId)
  if (isRefusal(error, binding) && principal !== null && principal.kind !== 'session') deps.noteRefused(principal, error, requestId)
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
