/** What both edges work with: the addresses of the endpoint table, and what they need of the rest. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRow, At, AuthKind } from '../../platform/endpoint.ts'
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
import type { ActTrail } from './rows/audited-actions.ts'
import type { UnreadReplies } from './unread-replies.ts'

/** One address of a row: the row itself, or its twin with a credential and rule of its own. */
export interface Binding {
  readonly name: string
  readonly row: AnyRow
  readonly at: At
  readonly auth: AuthKind
  readonly access: AccessRule
}

/** What the HTTP edge needs of the rest; composition/gateway.ts gives it. */
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
  /** Key or agent token of the request. Throws 401; a failure of ours is never a 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
  /** Who may call a session row: the signed-in user, or an agent that reads. Throws `no_session`, `forbidden`, `foreign_origin`. */
  authenticateSession(method: string, headers: IncomingHttpHeaders): Principal | Promise<Principal>
  /** Address of the client; behind trusted proxies the one that they report. */
  clientIp(request: IncomingMessage): string
  /** Looks at the kill switch once more, after the call was registered as in flight. */
  recheck(principal: Principal): void
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /** Counts a request to /v1 without a valid credential against its sender. Throws `rate_limit_exceeded`. */
  countAnonymous(request: IncomingMessage, response?: ServerResponse): void
  /** Counts a call of a signed-in person. Throws `rate_limit_exceeded`. */
  countPerson(userId: number): void
  /** The audit trail. */
  readonly acts: ActTrail
  /** Streams that are being sent, kept alive while they are silent. */
  readonly streams: OpenStreams
  /** Replies that wait for clients who read slowly. */
  readonly unread: UnreadReplies
  /** Open connections of clients. */
  readonly connections: Connections
  /** Places for streamed replies. */
  readonly streamPlaces: StreamPlaces
  /** Answers browsers about pages of other origins. */
  readonly cors: Cors
  /** Left out: nobody counts. */
  readonly watch?: EdgeWatch | undefined
  /** The place of a request in traces, from its headers; left out: nobody traces. */
  readonly placeOf?: ((headers: IncomingHttpHeaders) => TracePlace) | undefined
  /** True while the process drains: new calls are turned away. */
  isDraining(): boolean
  /** True when another process has taken over: each connection ends with its next reply. */
  isRetiring(): boolean
}

/** Documents that any program on the net fetches. They stand ready, and who fetches them without a credential is counted. */
const publicDocuments: readonly At[] = [
  'GET /openapi.json',
  'GET /llms.txt',
  'GET /mcp/server-card',
  'GET /.well-known/mcp/server-card.json',
  'GET /.well-known/mcp-server-card',
  'GET /.well-known/ai-catalog.json',
]

/**
 * Whether calls without a credential count against their sender: those of the API and of OAuth, those that begin a sign-in, because each of
 * them is kept for a while, the one that hands a key to the command line, and those of public documents. Health, keys and pages do not count.
 */
export const countsStrangers = (at: At): boolean =>
  at.includes(' /v1/') || at.includes(' /oauth/') || at === 'GET /auth/{provider}' || at === 'POST /cli/token' || publicDocuments.includes(at)
