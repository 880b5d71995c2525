/** What the HTTP edge and the MCP edge share: the addresses of the endpoint table, and their dependencies. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRow, At, AuthKind } from '../../platform/endpoint.ts'
import type { GatewayError } from '../../platform/errors.ts'
import type { Inflight } from '../../platform/loop/inflight.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { TracePlace } from '../../platform/observe/tracing.ts'
import type { AccessRule, BearerPrincipal, Principal } from '../../platform/security/principal.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { BodyRoom } from './bodies/body-room.ts'
import type { FormLimits } from './bodies/multipart.ts'
import type { Connections } from './connections.ts'
import type { Cors } from './cors.ts'
import type { EdgeWatch } from './edge-watch.ts'
import type { StreamPlaces } from './places.ts'
import type { OpenStreams } from './replies/open-streams.ts'
import type { RateHeaders } from './replies/rate-headers.ts'
import type { ActCall, ActTrail } from './rows/audited-actions.ts'
import type { UnreadReplies } from './unread-replies.ts'

/** One address of a row. A row can have a second address, its twin, with another credential and access rule. */
export interface Binding {
  readonly name: string
  readonly row: AnyRow
  readonly at: At
  readonly auth: AuthKind
  readonly access: AccessRule
}

/** The dependencies of the HTTP edge. composition/gateway.ts provides them. */
export interface EdgeDeps {
  readonly services: object
  readonly ids: Ids
  readonly log: Log
  readonly inflight: Inflight
  readonly baseUrl: () => string
  /** Room for request bodies. */
  readonly bodies: BodyRoom
  readonly bodyLimitBytes: number
  readonly inferenceBodyLimitBytes: number
  readonly formLimits: FormLimits
  /** Returns the principal of the key or agent token of a request. Throws 401; a failure of the gateway itself is never a 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
  /** Returns the caller of a session row: a signed-in user, or an agent that reads. Throws `no_session`, `forbidden`, `foreign_origin`. */
  authenticateSession(method: string, headers: IncomingHttpHeaders): Principal | Promise<Principal>
  /** Returns the address of the client. A trusted proxy reports the address of its client. */
  clientIp(request: IncomingMessage): string
  /** Checks the kill switch again, after the call was registered as running. */
  recheck(principal: Principal): void
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /** Counts a call of a model that was refused before a provider was asked. */
  noteRefused(principal: BearerPrincipal, error: GatewayError, requestId: string): void
  /** Shows callers what their limits of requests leave. */
  readonly rates: RateHeaders
  /** Counts a request without a valid credential against its sender. Throws `rate_limit_exceeded`. */
  countAnonymous(request: IncomingMessage, response?: ServerResponse): void
  /** Counts a call of a signed-in person. Throws `rate_limit_exceeded`. */
  countPerson(userId: number): void
  /** The audit trail. */
  readonly acts: ActTrail
  /** Is called after an act of management has succeeded. */
  readonly onAct?: ((act: ActCall) => void) | undefined
  /** Streams that are being sent. They get keep-alive bytes while they are silent. */
  readonly streams: OpenStreams
  /** Replies that wait for clients who read slowly. */
  readonly unread: UnreadReplies
  /** Open connections of clients. */
  readonly connections: Connections
  /** Places for streamed replies. */
  readonly streamPlaces: StreamPlaces
  /** Answers browsers for pages of other origins. */
  readonly cors: Cors
  /** Without it, requests are not counted. */
  readonly watch?: EdgeWatch | undefined
  /** Returns the place of a request in traces, from its headers. Without it, requests are not traced. */
  readonly placeOf?: ((headers: IncomingHttpHeaders) => TracePlace) | undefined
  /** True while the process drains and refuses new calls. */
  isDraining(): boolean
  /** True when another process has taken over. Then each connection ends with its next reply. */
  isRetiring(): boolean
}

/** Documents that any program on the internet may fetch. They are served from memory, and every fetch without a credential is counted. */
const publicDocuments: readonly At[] = [
  'GET /openapi.json',
  'GET /llms.txt',
  'GET /mcp/server-card',
  'GET /.well-known/mcp/server-card.json',
  'GET /.well-known/mcp-server-card',
  'GET /.well-known/ai-catalog.json',
]

/**
 * Returns true when calls without a credential count against their sender: calls of the API and of OAuth, calls that begin a sign-in (the gateway stores
 * each for a while), the call that gives a key to the command line, and public documents. Health, keys and pages do not count.
 */
export const countsStrangers = (at: At): boolean =>
  at.includes(' /v1/') ||
  at.includes(' /v1beta/') ||
  at.includes(' /oauth/') ||
  at === 'GET /auth/{provider}' ||
  at === 'POST /cli/token' ||
  publicDocuments.includes(at)
