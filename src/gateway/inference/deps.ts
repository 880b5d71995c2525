import type { Clock } from '../../platform/clock.ts'
import type { HeavyTurns } from '../../platform/loop/heavy-turns.ts'
import type { Inflight } from '../../platform/loop/inflight.ts'
import type { AudioLengths } from '../../platform/media/audio-length.ts'
import type { ImageScaler } from '../../platform/media/image-scaler.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { HeldReplies } from '../../platform/outbound/held-replies.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { BearerPrincipal, CallPolicy } from '../../platform/security/principal.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { Route } from '../catalog/model.ts'
import type { Limits } from '../limits/engine/admission.ts'
import type { Dialect } from '../providers/dialect.ts'
import type { DialectId } from '../providers/provider.ts'
import type { OrgRouting } from '../routing/org-routing.ts'
import type { Attempt, Plan, ResolveRequest } from '../routing/plan.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { ExactNumbers } from '../wire/json/exact-numbers.ts'
import type { CallTraces } from './call-trace.ts'
import type { CallWatch } from './call-watch.ts'
import type { ContentLog } from './content-log/content-log.ts'
import type { Departures } from './leaving/departures.ts'
import type { ReplyTimeouts } from './replies/reply-wait.ts'

/** A registered agent that `x-br-agent-id` names. */
export interface NamedAgent {
  readonly id: number
  readonly status: 'active' | 'revoked'
  /** Who made it; null: nobody who is a user. */
  readonly createdByUser: number | null
  readonly ancestorIds: readonly number[]
  /** What is ruled for its calls: its own rules and those of all above it. */
  readonly policies: readonly CallPolicy[]
}

/** What routing learns from every dial. */
export interface RouteObserver {
  succeeded(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** A failure that counts against the circuit. */
  failed(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** 429: counts only when repeated. */
  rateLimited(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** A dial is about to begin. False: another call probes the route right now, so dial something else first. */
  begins(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): boolean
  /** The dial ended without a word on the route. */
  undecided(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** The platform's own key was refused, or refused on billing grounds. */
  refused(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** A reply called tools; sound: the arguments of all of them are JSON. */
  calledTools(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number, sound: boolean): void
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

/** What the pipeline works with; composition/gateway.ts gives it. */
export interface InferenceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly outbound: Outbound
  readonly inflight: Inflight
  /** Places for calls that are followed behind their callers. */
  readonly departures: Departures
  readonly limits: Limits<UsageEvent>
  /** True: what the platform's account pays is taken from the prepaid balance of the organisation, unless the key is on trial. */
  readonly isBilling: boolean
  /** Throws model_not_found and every no_route; dials nothing. */
  resolve(request: ResolveRequest): Plan
  /** The route whose model a reply names instead of the one that was asked, when it is dearer. Left out: nobody looks. */
  dearerRoute?(asked: Route, model: string): Route | null
  /** What of an organisation decides where its calls may go. Synchronous when cached. */
  orgRouting(orgId: number): OrgRouting | Promise<OrgRouting>
  /** Asked only for organisations that have a retention window. */
  readonly contentLog: Pick<ContentLog, 'keep' | 'keepFailure'>
  dialectOf(id: DialectId): Dialect
  /** Room for what is kept of the replies of providers. */
  readonly heldReplies: Pick<HeldReplies, 'open' | 'run'>
  /** Turns for calls with heavy bodies. */
  readonly heavyTurns: Pick<HeavyTurns, 'run'>
  /** Of a call with a heavy body: does work in a turn of its organisation. Left out: the body is light. */
  readonly inTurn?: (<T>(work: () => T) => Promise<T>) | undefined
  /** Of a call whose body has numbers that a double cannot hold: these. */
  readonly exact?: ExactNumbers | undefined
  /** Makes large inline images smaller. */
  readonly imageScaler: Pick<ImageScaler, 'shrink'>
  /** How long recordings last. */
  readonly audioLengths: Pick<AudioLengths, 'measure'>
  readonly observer: RouteObserver
  /** Left out: nobody counts. */
  readonly watch?: CallWatch | undefined
  /** Left out: nobody traces. */
  readonly traces?: CallTraces | undefined
  /** How long providers are waited for. */
  readonly timeouts: ReplyTimeouts
  readonly images: ImageSettings
  /** Writes down that a prompt is about to be sent there to have its tokens counted. Rejects when it cannot: then it is not sent. */
  noteTokenCount(orgId: number, route: Route): Promise<void>
  /** The agent of the org with that id or exact name, or null. Synchronous when cached. */
  agentByLabel(orgId: number, label: string): NamedAgent | null | Promise<NamedAgent | null>
  /** Throws when the caller was revoked meanwhile: asked again just before each dial. */
  recheck(principal: BearerPrincipal): void
}
