/**
 * Serves POST /mcp. One URL serves both protocol eras. Each POST gets a new server, and no state is kept between two POSTs, so any process can serve
 * any call.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { BodyRoom, Upload } from '../../gateway/http/bodies/body-room.ts'
import { ClientGoneError, readBody, textBytes } from '../../gateway/http/bodies/request-body.ts'
import { isOfStranger } from '../../gateway/http/callers/anonymous.ts'
import { ownersOf } from '../../gateway/http/callers/caller.ts'
import type { Connections } from '../../gateway/http/connections.ts'
import type { StreamPlaces } from '../../gateway/http/places.ts'
import { writeError } from '../../gateway/http/replies/reply-writer.ts'
import { agentIdHeader, agentLabelOf } from '../../gateway/http/rows/call-context.ts'
import { translate } from '../../gateway/http/translate.ts'
import type { UnreadReplies } from '../../gateway/http/unread-replies.ts'
import { valueRoomBytes } from '../../gateway/wire/json/json-body.ts'
import { managementBounds } from '../../gateway/wire/json/json-scan.ts'
import { runIdOfHeaders } from '../../gateway/wire/runs/run-id.ts'
import type { Clock } from '../../platform/clock.ts'
import { fail, type GatewayError, toGatewayError } from '../../platform/errors.ts'
import type { Inflight } from '../../platform/loop/inflight.ts'
import type { Log, LogFields } from '../../platform/observe/log.ts'
import { type TracePlace, traceFields } from '../../platform/observe/tracing.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { mcpIdentity } from '../documents/instructions.ts'
import { isListen } from '../news/listen-body.ts'
import type { Listener } from '../news/listen-stream.ts'
import type { SurfaceOf } from '../surface.ts'
import type { Eras } from './eras.ts'
import { allowedHostNames, checkMediaTypes, checkOrigin, withBearer, withChallenge } from './guard.ts'
import { PaidUnits, payForBatch } from './message-rate.ts'
import { parseRpcBody, writeRefusal } from './rpc-body.ts'

/** What MCP needs from the rest of the gateway. composition/edges/mcp.ts provides it. */
export interface McpDeps {
  /** Returns the surface of a caller. */
  readonly surfaceOf: SurfaceOf
  readonly ids: Ids
  readonly clock: Clock
  readonly log: Log
  readonly inflight: Inflight
  /** Room for request bodies. */
  readonly bodies: BodyRoom
  /** Open connections of clients. */
  readonly connections: Connections
  /** Places for answers that may be streams. */
  readonly streamPlaces: StreamPlaces
  /** Replies whose clients read slowly. */
  readonly unread: UnreadReplies
  /** Maximum number of streams of changes of this process (setting CHANGE_STREAMS_MAX). */
  readonly changeStreamsMax: number
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: ((orgId: number) => string) | undefined
  readonly baseUrl: () => string
  /** Accepted host names in addition to the name of the base URL and loopback names (setting ALLOWED_HOSTS). */
  readonly allowedHosts: readonly string[]
  /** Name of the server (setting SERVICE_ID), and the version of the product. */
  readonly serviceId: string
  readonly version: string
  /** Returns the caller by the key or agent token in Authorization. Throws 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
  /** Checks the kill switch again, after the call is registered as in flight. */
  recheck(principal: BearerPrincipal): void
  /** Returns the address of the client. */
  clientIp(request: IncomingMessage): string
  /** Counts a request without a valid credential against its sender. Throws `rate_limit_exceeded`. */
  countAnonymous(request: IncomingMessage): void
  /** Takes one unit of the caller's rate. Throws `rate_limit_exceeded`. Returns no promise when the database is not needed. */
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /**
   * Reserves one of the streams of changes that an organisation may have open over all processes. Returns a function that releases it. Returns null
   * when all are open.
   */
  holdStream(orgId: number): Promise<(() => void) | null>
  /** Returns the place of a request in traces, from its headers. When it is left out, nothing is traced. */
  readonly placeOf?: ((headers: IncomingHttpHeaders) => TracePlace) | undefined
  isDraining(): boolean
}

/** The origin of a request, for the audit trail. */
export interface McpCaller {
  readonly requestId: string
  clientIp(): string
}

/** How callers of one URL authenticate. */
export interface McpMount {
  /** Returns the caller by the request's headers. Throws 401 and 403. */
  authenticate(headers: IncomingHttpHeaders, from: McpCaller): BearerPrincipal | Promise<BearerPrincipal>
  /** Checks what needs the database, after the request has taken a unit of the caller's rate. Absent: nothing. Throws `not_found`. */
  enter?(principal: BearerPrincipal, headers: IncomingHttpHeaders): Promise<void>
  /** Returns a refusal of `authenticate` with the challenge that says how a client signs in here. */
  challenge(error: GatewayError, headers: IncomingHttpHeaders): GatewayError
}

export interface Mcp {
  /** Serves any method on /mcp, or on the URL of another mount. It never throws. */
  handle(request: IncomingMessage, response: ServerResponse, mount?: McpMount): Promise<void>
  /** Ends subscriptions in good order and accepts no new ones, while calls continue. It is called when a drain begins. */
  endSubscriptions(): void
  /** Ends the requests that are open. */
  close(): Promise<void>
}

/** Maximum size of a body. JSON-RPC messages are small, and a memory object over MCP has at most 256 KiB. */
const bodyLimitBytes = 4 * 1024 * 1024

/** Returns the mount whose callers send a key or a token of the gateway. */
export const bearerMount = ({ authenticate, serviceId }: Pick<McpDeps, 'authenticate' | 'serviceId'>): McpMount => ({
  authenticate: headers => authenticate(withBearer(headers)),
  challenge: (error, headers) => withChallenge(error, serviceId, headers),
})

/** Returns the /mcp handler. */
export function createMcp(deps: McpDeps): Mcp {
  const eras = new LazyEras(deps)
  const bearer = bearerMount(deps)

  const handle = async (request: IncomingMessage, response: ServerResponse, mount = bearer): Promise<void> => {
    const requestId = deps.ids.requestId()
    response.setHeader('x-request-id', requestId)
    const trace = deps.placeOf?.(request.headers)
    const cut = new AbortController()
    let unregister: (() => void) | undefined
    let leaveRun: (() => void) | undefined
    try {
      admit(request, deps)
      const from = { requestId, clientIp: () => deps.clientIp(request) }
      const principal = await signIn(request, from, mount, deps)
      unregister = deps.inflight.register(ownersOf(principal), cut)
      deps.recheck(principal)
      const noPlace = deps.connections.admit(request, principal.orgId)
      if (noPlace !== null) throw noPlace
      holdPlace(principal, response, deps)
      // The first message pays before the body is read. The unit stays paid even when the body is invalid.
      const paid = new PaidUnits()
      const take = (): void | Promise<void> => deps.takeRate(principal)
      const wait = take()
      if (wait !== undefined) await wait
      paid.add()
      if (mount.enter !== undefined) await mount.enter(principal, request.headers)
      const agentLabel = agentLabelOf(request.headers[agentIdHeader])
      checkMediaTypes(request.headers)
      const upload = uploadOf(principal, response, deps)
      const bytes = await readBody(request, response, bodyLimitBytes, upload, textBytes)
      const parsed = await parseRpcBody(bytes, request.headers['mcp-protocol-version'])
      if ('refusal' in parsed) return writeRefusal(response, parsed.refusal)
      const full = upload.weigh(valueRoomBytes(bytes, managementBounds))
      if (full !== null) throw full
      const { body, refused: unpaid } = await payForBatch(parsed.body, paid, take, requestId)
      const runHeaders = withBaggageOf(body, request.headers)
      const surface = deps.surfaceOf(
        {
          principal,
          requestId,
          agentLabel,
          runId: runIdOfHeaders(runHeaders),
          runHeaders,
          joinRun: runKey => {
            leaveRun ??= deps.inflight.joinRun(runKey, cut)
          },
          paid,
          signal: cut.signal,
          clientIp: () => deps.clientIp(request),
          ...clientNameOf(body),
          ...(trace === undefined ? {} : { trace }),
        },
        request.url,
      )
      cut.signal.addEventListener('abort', () => {
        // A running tool answers with the reason of the cut. When no tool runs, no answer can carry the reason, so the connection is closed.
        if (surface.tools.running === 0 && !isListen(body)) response.destroy()
      })
      const isStillGood = () => isTaken(() => signedInAgain(mount, request.headers, from), deps)
      const listener = { ...listenerOf(principal, response), cut: cut.signal, isStillGood }
      await (await eras.get()).serve({ request, response, body, refused: unpaid, surface, cancelOwner: cancelOwner(principal, request), listener })
    } catch (thrown) {
      refuse(thrown, { requestId, ...traceFields(trace) }, response, deps)
    } finally {
      leaveRun?.()
      unregister?.()
    }
  }
  return { handle, endSubscriptions: () => eras.endSubscriptions(), close: () => eras.close() }
}

/** The SDKs of the protocol. They are loaded at the first message, because they take 13 MiB of memory. Decision 0540 says why. */
class LazyEras {
  readonly #deps: McpDeps
  #loading: Promise<Eras> | null = null
  #isEnding = false

  constructor(deps: McpDeps) {
    this.#deps = deps
  }

  get(): Promise<Eras> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  endSubscriptions(): void {
    this.#isEnding = true
    this.#loading?.then(eras => eras.endSubscriptions()).catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#isEnding = true
    await (await this.#loading)?.close()
  }

  async #load(): Promise<Eras> {
    const { Eras } = await import('./eras.ts')
    const eras = new Eras(mcpIdentity(this.#deps.serviceId, this.#deps.version), bodyLimitBytes, this.#deps)
    if (this.#isEnding) eras.endSubscriptions()
    return eras
  }
}

const described = z.object({
  params: z.object({ _meta: z.object({ 'io.modelcontextprotocol/clientInfo': z.object({ name: z.string().min(1).max(1000) }) }) }),
})

/** Returns the client's name as the client states it. Only clients of the discover era send it with every request. */
function clientNameOf(body: unknown): { clientName?: string } {
  const found = described.safeParse(body)
  return found.success ? { clientName: found.data.params._meta['io.modelcontextprotocol/clientInfo'].name } : {}
}

const withBaggage = z.object({ params: z.object({ _meta: z.object({ baggage: z.string() }) }) })

/** Returns the headers with the baggage of the message, which has the place of the header of that name. A header wins. */
function withBaggageOf(body: unknown, headers: IncomingHttpHeaders): IncomingHttpHeaders {
  if (headers['baggage'] !== undefined) return headers
  const found = withBaggage.safeParse(body)
  return found.success ? { ...headers, baggage: found.data.params._meta.baggage } : headers
}

/** Checks the caller of a subscription again. */
async function signedInAgain(mount: McpMount, headers: IncomingHttpHeaders, from: McpCaller): Promise<BearerPrincipal> {
  const principal = await mount.authenticate(headers, from)
  await mount.enter?.(principal, headers)
  return principal
}

/** Makes the checks that need no credential. A stateless server offers no GET stream and has no session to DELETE. */
function admit(request: IncomingMessage, deps: McpDeps): void {
  checkOrigin(request.headers, allowedHostNames(deps.baseUrl(), deps.allowedHosts))
  if (request.method !== 'POST') throw fail('method_not_allowed', { headers: { allow: 'POST' } })
  if (deps.isDraining()) throw fail('shutting_down', { headers: { connection: 'close' } })
}

async function signIn(request: IncomingMessage, from: McpCaller, mount: McpMount, deps: McpDeps): Promise<BearerPrincipal> {
  try {
    return await mount.authenticate(request.headers, from)
  } catch (thrown) {
    const error = toGatewayError(translate(thrown))
    if (isOfStranger(error)) deps.countAnonymous(request)
    throw mount.challenge(error, request.headers)
  }
}

/**
 * Takes a place for an answer that may be a stream, and watches the bytes of the response that the client has not read. The place is free again when
 * the response has closed. Throws `places_taken`.
 */
function holdPlace({ orgId }: BearerPrincipal, response: ServerResponse, { streamPlaces, unread }: McpDeps): void {
  // The response has already closed, so a listener that is added now would never run.
  if (response.destroyed) throw new ClientGoneError()
  const give = streamPlaces.take(orgId)
  response.once('close', give)
  unread.watchWrites(response, orgId)
}

/** Returns the room for the body. It is released when the response has ended. */
function uploadOf({ orgId }: BearerPrincipal, response: ServerResponse, { bodies }: McpDeps): Upload {
  const upload = bodies.open(orgId)
  response.once('close', () => upload.release())
  return upload
}

/** Returns whether the credential is still accepted, because a stream may outlive it. */
async function isTaken(authenticate: () => BearerPrincipal | Promise<BearerPrincipal>, deps: McpDeps): Promise<boolean> {
  try {
    deps.recheck(await authenticate())
    return true
  } catch (thrown) {
    // A failure of the gateway says nothing about the credential.
    const { status } = toGatewayError(translate(thrown))
    return status !== 401 && status !== 403
  }
}

function listenerOf(principal: BearerPrincipal, response: ServerResponse): Pick<Listener, 'owner' | 'orgId' | 'endsAtMs' | 'hangUp'> {
  const hangUp = (): void => {
    if (!response.writableFinished) response.destroy()
  }
  return { owner: ownerOf(principal), orgId: principal.orgId, endsAtMs: principal.kind === 'agent' ? principal.expiresAtMs : null, hangUp }
}

function ownerOf(principal: BearerPrincipal): string {
  return `${principal.kind}:${principal.kind === 'agent' ? principal.agentId : principal.keyId}`
}

/** Returns the owner of calls that a cancel may end. A cancel must use the same credential and come from the same address. */
function cancelOwner(principal: BearerPrincipal, request: IncomingMessage): string {
  return `${ownerOf(principal)}@${request.socket.remoteAddress ?? ''}`
}

/** Writes a failure. A failure of HTTP itself has the same envelope as on every other path. The SDKs write failures of JSON-RPC. */
function refuse(thrown: unknown, call: Pick<LogFields, 'requestId' | 'traceId'>, response: ServerResponse, deps: McpDeps): void {
  if (thrown instanceof ClientGoneError) {
    response.destroy()
    return
  }
  const error = writeError(response, translate(thrown))
  if (error.errorName === 'internal_error')
    deps.log.error('mcp request failed', { ...call, path: '/mcp', status: error.status, code: error.code, error: error.cause })
}
