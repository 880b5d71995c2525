import type { AudioLengths } from '../../platform/audio-length.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import type { ImageScaler } from '../../platform/image-scaler.ts'
import type { Inflight } from '../../platform/inflight.ts'
import type { Log } from '../../platform/log.ts'
import type { Outbound } from '../../platform/outbound.ts'
import type { BearerPrincipal, CallPolicy } from '../../platform/principal.ts'
import type { Route, RouteId } from '../catalog/model.ts'
import type { Limits } from '../limits/admission.ts'
import type { Dialect } from '../providers/dialect.ts'
import type { DialectId } from '../providers/provider.ts'
import type { OrgRouting } from '../routing/org-routing.ts'
import type { Plan, ResolveRequest } from '../routing/plan.ts'
import type { UsageEvent } from '../usage/record.ts'
import type { CallTraces } from './call-trace.ts'
import type { CallWatch } from './call-watch.ts'
import type { ContentLog } from './content-log.ts'

/** A registered agent that `x-br-agent-id` names. */
export interface NamedAgent {
  readonly id: number
  readonly status: 'active' | 'revoked'
  readonly ancestorIds: readonly number[]
  /** What is ruled for its calls: its own rules and those of all above it. */
  readonly policies: readonly CallPolicy[]
}

/** What routing learns from every dial. */
export interface RouteObserver {
  succeeded(id: RouteId, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** A failure that counts against the circuit. */
  failed(id: RouteId): void
  /** 429: counts only when repeated. */
  rateLimited(id: RouteId): void
  /** A dial is about to begin. False: another call probes the route right now, so dial something else first. */
  begins(id: RouteId): boolean
  /** The dial ended without a word on the route. */
  undecided(id: RouteId): void
  /** The platform's own key was refused, or refused on billing grounds. */
  refused(id: RouteId): void
  /** A reply called tools; sound: the arguments of all of them are JSON. */
  calledTools(id: RouteId, sound: boolean): void
}

/** What image calls go by. */
export interface ImageSettings {
  /** Prefix of the panel's id. */
  readonly serviceId: string
  /** Pause between two looks at a job. */
  readonly pollMs: number
  /** When an attempt is given up. */
  readonly deadlineMs: number
  /** The chat model that judges the pictures of the panel. */
  readonly judgeModel: string
  readonly judgeTimeoutMs: number
}

/** What the pipeline works with; app.ts gives it. */
export interface InferenceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly outbound: Outbound
  readonly inflight: Inflight
  readonly limits: Limits<UsageEvent>
  /** True: what the platform's account pays is taken from the prepaid balance of the organisation, unless the key is on trial. */
  readonly isBilling: boolean
  /** Throws model_not_found and every no_route; dials nothing. */
  resolve(request: ResolveRequest): Plan
  /** What of an organisation decides where its calls may go. Synchronous when cached. */
  orgRouting(orgId: number): OrgRouting | Promise<OrgRouting>
  /** Asked only for organisations that have a retention window. */
  readonly contentLog: Pick<ContentLog, 'keep' | 'keepFailure'>
  dialectOf(id: DialectId): Dialect
  /** Makes large inline images smaller. */
  readonly imageScaler: Pick<ImageScaler, 'shrink'>
  /** How long recordings last. */
  readonly audioLengths: Pick<AudioLengths, 'measure'>
  readonly observer: RouteObserver
  /** Left out: nobody counts. */
  readonly watch?: CallWatch | undefined
  /** Left out: nobody traces. */
  readonly traces?: CallTraces | undefined
  readonly images: ImageSettings
  /** Writes down that a prompt is about to be sent there to have its tokens counted. Rejects when it cannot: then it is not sent. */
  noteTokenCount(orgId: number, route: Route): Promise<void>
  /** The agent of the org with that id or exact name, or null. Synchronous when cached. */
  agentByLabel(orgId: number, label: string): NamedAgent | null | Promise<NamedAgent | null>
  /** Throws when the caller was revoked meanwhile: asked again just before each dial. */
  recheck(principal: BearerPrincipal): void
}
