/**
 * POST /mcp, both protocol eras on one URL. A fresh server answers every POST and nothing is kept between two of them, so any
 * process can serve any call.
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
import { Eras } from './eras.ts'
import { allowedHostNames, checkMediaTypes, checkOrigin, withBearer, withChallenge } from './guard.ts'
import { PaidUnits, payForBatch } from './message-rate.ts'
import { parseRpcBody, writeRefusal } from './rpc-body.ts'

/** What MCP needs of the rest; composition/edges/mcp.ts gives it. */
export interface McpDeps {
  /** What each caller sees. */
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
  /** Replies that wait for clients who read slowly. */
  readonly unread: UnreadReplies
  /** Streams of changes that this process holds (setting CHANGE_STREAMS_MAX). */
  readonly changeStreamsMax: number
  /** Who founded an organisation. Left out: each organisation has a founder of its own. */
  readonly founderOf?: ((orgId: number) => string) | undefined
  readonly baseUrl: () => string
  /** Host names beside the one of the base URL and loopback (setting ALLOWED_HOSTS). */
  readonly allowedHosts: readonly string[]
  /** Name of the server (setting SERVICE_ID) and version of the product. */
  readonly serviceId: string
  readonly version: string
  /** Key or agent token in Authorization. Throws 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
  /** Looks at the kill switch once more, after the call was registered as in flight. */
  recheck(principal: BearerPrincipal): void
  /** Address of the client. */
  clientIp(request: IncomingMessage): string
  /** Counts a request without a valid credential against its sender. Throws `rate_limit_exceeded`. */
  countAnonymous(request: IncomingMessage): void
  /** Takes one unit of the caller's rate. Throws `rate_limit_exceeded`. Returns nothing when decided without the database. */
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /** Holds one of the streams of changes that an organisation may have open over all processes; what comes back gives it back, null: all are open. */
  holdStream(orgId: number): Promise<(() => void) | null>
  /** The place of a request in traces, from its headers; left out: nobody traces. */
  readonly placeOf?: ((headers: IncomingHttpHeaders) => TracePlace) | undefined
  isDraining(): boolean
}

/** Where a request comes from, for the audit trail. */
export interface McpCaller {
  readonly requestId: string
  clientIp(): string
}

/** How callers of one URL prove who they are. */
export interface McpMount {
  /** The caller by the request's headers. Throws 401 and 403. */
  authenticate(headers: IncomingHttpHeaders, from: McpCaller): BearerPrincipal | Promise<BearerPrincipal>
  /** A refusal of `authenticate` with the challenge that tells a client how to sign in here. */
  challenge(error: GatewayError, headers: IncomingHttpHeaders): GatewayError
}

export interface Mcp {
  /** Serves any method on /mcp, or on the URL of another mount. It never throws. */
  handle(request: IncomingMessage, response: ServerResponse, mount?: McpMount): Promise<void>
  /** Ends subscriptions in good order and takes no new ones; calls go on. For the begin of a drain. */
  endSubscriptions(): void
  /** Ends what is open. */
  close(): Promise<void>
}

/** JSON-RPC messages are small; a memory object over MCP is at most 256 KiB. */
const bodyLimitBytes = 4 * 1024 * 1024

/** Makes the /mcp handler. */
export function createMcp(deps: McpDeps): Mcp {
  const eras = new Eras(mcpIdentity(deps.serviceId, deps.version), bodyLimitBytes, deps)
  const bearer: McpMount = {
    authenticate: headers => deps.authenticate(withBearer(headers)),
    challenge: (error, headers) => withChallenge(error, deps.serviceId, headers),
  }

  const handle = async (request: IncomingMessage, response: ServerResponse, mount = bearer): Promise<void> => {
    const requestId = deps.ids.requestId()
    response.setHeader('x-request-id', requestId)
    const trace = deps.placeOf?.(request.headers)
    const cut = new AbortController()
    let unregister: (() => void) | undefined
    try {
      admit(request, deps)
      const from = { requestId, clientIp: () => deps.clientIp(request) }
      const principal = await signIn(request, from, mount, deps)
      unregister = deps.inflight.register(ownersOf(principal), cut)
      deps.recheck(principal)
      const noPlace = deps.connections.admit(request, principal.orgId)
      if (noPlace !== null) throw noPlace
      holdPlace(principal, response, deps)
      // The first message pays before the body is read, and so does what turns out to be none.
      const paid = new PaidUnits()
      const take = (): void | Promise<void> => deps.takeRate(principal)
      const wait = take()
      if (wait !== undefined) await wait
      paid.add()
      const agentLabel = agentLabelOf(request.headers[agentIdHeader])
      checkMediaTypes(request.headers)
      const bytes = textBytes(await readBody(request, response, bodyLimitBytes, uploadOf(principal, response, deps)))
      const parsed = await parseRpcBody(bytes, request.headers['mcp-protocol-version'])
      if ('refusal' in parsed) return writeRefusal(response, parsed.refusal)
      const { body, refused: unpaid } = await payForBatch(parsed.body, paid, take, requestId)
      const surface = deps.surfaceOf(
        {
          principal,
          requestId,
          agentLabel,
          paid,
          signal: cut.signal,
          clientIp: () => deps.clientIp(request),
          ...clientNameOf(body),
          ...(trace === undefined ? {} : { trace }),
        },
        request.url,
      )
      cut.signal.addEventListener('abort', () => {
        // A running tool answers with the reason; a stream on which nothing runs has nobody to say it.
        if (surface.tools.running === 0 && !isListen(body)) response.destroy()
      })
      const isStillGood = () => isTaken(() => mount.authenticate(request.headers, from), deps)
      const listener = { ...listenerOf(principal, response), cut: cut.signal, isStillGood }
      await eras.serve({ request, response, body, refused: unpaid, surface, cancelOwner: cancelOwner(principal, request), listener })
    } catch (thrown) {
      refuse(thrown, { requestId, ...traceFields(trace) }, response, deps)
    } finally {
      unregister?.()
    }
  }
  return { handle, endSubscriptions: () => eras.endSubscriptions(), close: () => eras.close() }
}

const described = z.object({
  params: z.object({ _meta: z.object({ 'io.modelcontextprotocol/clientInfo': z.object({ name: z.string().min(1).max(1000) }) }) }),
})

/** What the client calls itself. Only clients of the discover era say it with every request. */
function clientNameOf(body: unknown): { clientName?: string } {
  const found = described.safeParse(body)
  return found.success ? { clientName: found.data.params._meta['io.modelcontextprotocol/clientInfo'].name } : {}
}

/** The checks that need no credential: a stateless server has no GET stream and no session to DELETE, for nobody. */
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

/** A place for an answer that may be a stream, and eyes on what of it is not read, until the response has ended. Throws `places_taken`. */
function holdPlace({ orgId }: BearerPrincipal, response: ServerResponse, { streamPlaces, unread }: McpDeps): void {
  // Its close would not be heard any more.
  if (response.destroyed) throw new ClientGoneError()
  const give = streamPlaces.take(orgId)
  response.once('close', give)
  unread.watchWrites(response, orgId)
}

/** The room that the body takes, until the response has ended. */
function uploadOf({ orgId }: BearerPrincipal, response: ServerResponse, { bodies }: McpDeps): Upload {
  const upload = bodies.open(orgId)
  response.once('close', () => upload.release())
  return upload
}

/** Whether a credential that was taken would be taken again: a stream may outlive it. */
async function isTaken(authenticate: () => BearerPrincipal | Promise<BearerPrincipal>, deps: McpDeps): Promise<boolean> {
  try {
    deps.recheck(await authenticate())
    return true
  } catch (thrown) {
    // A failure of ours says nothing about the credential.
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

/** Who may cancel whose calls: the same credential from the same address. */
function cancelOwner(principal: BearerPrincipal, request: IncomingMessage): string {
  return `${ownerOf(principal)}@${request.socket.remoteAddress ?? ''}`
}

/** Failures of HTTP itself have the envelope of every other path; those of JSON-RPC are the SDKs' own. */
function refuse(thrown: unknown, call: Pick<LogFields, 'requestId' | 'traceId'>, response: ServerResponse, deps: McpDeps): void {
  if (thrown instanceof ClientGoneError) {
    response.destroy()
    return
  }
  const error = writeError(response, translate(thrown))
  if (error.errorName === 'internal_error')
    deps.log.error('mcp request failed', { ...call, path: '/mcp', status: error.status, code: error.code, error: error.cause })
}
