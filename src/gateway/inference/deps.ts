import type { Clock } from '../../platform/clock.ts'
import type { CancelSignal } from '../../platform/loop/cancellation.ts'
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
import type { Identities } from '../cloud/identities.ts'
import type { Limits } from '../limits/engine/admission.ts'
import type { Dialect } from '../providers/dialect.ts'
import type { DialectId } from '../providers/provider.ts'
import type { OrgRouting } from '../routing/org-routing.ts'
import type { Attempt, Plan, ResolveRequest } from '../routing/plan.ts'
import type { StickyRoutes } from '../routing/sticky/sticky-routes.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { EndedRuns } from '../usage/runs/ended-runs.ts'
import type { ExactNumbers } from '../wire/json/exact-numbers.ts'
import type { CallTraces } from './call-trace.ts'
import type { CallWatch } from './call-watch.ts'
import type { ContentLog } from './content-log/content-log.ts'
import type { Departures } from './leaving/departures.ts'
import type { RunsOfCalls } from './run/run-caps.ts'

/** A registered agent that `x-br-agent-id` names. */
export interface NamedAgent {
  readonly id: number
  readonly status: 'active' | 'revoked'
  /** The member who answers for the agent, or null when nobody does. */
  readonly ownerUser: number | null
  readonly ancestorIds: readonly number[]
  /** The policies of the agent and of all its ancestors. */
  readonly policies: readonly CallPolicy[]
}

/** Routing's record of the result of every dial. */
export interface RouteObserver {
  succeeded(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** A failure that counts against the circuit. */
  failed(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** The route answered 429, which counts against the circuit only when it is repeated. */
  rateLimited(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** A dial is about to begin. Returns false when another call probes the route at the moment, so that the caller dials another route first. */
  begins(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): boolean
  /** The dial ended without a statement about the route's health. */
  undecided(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** The provider refused the platform's own key, or refused it because of billing. */
  refused(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number): void
  /** A reply called tools. `sound` is true when the arguments of all calls are JSON. */
  calledTools(dialed: Pick<Attempt, 'route' | 'byok'>, orgId: number, sound: boolean): void
}

/** The settings of image calls. */
export interface ImageSettings {
  /** The prefix of the panel's model id. */
  readonly serviceId: string
  /** The pause between two polls of an image job. */
  readonly pollMs: number
  /** The time after which an attempt is given up. */
  readonly deadlineMs: number
  /** The chat model that judges the pictures of the panel. */
  readonly judgeModel: string
  readonly judgeTimeoutMs: number
}

/** The dependencies of the pipeline. composition/gateway.ts provides them. */
export interface InferenceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly outbound: Outbound
  readonly inflight: Inflight
  /** Places for calls that the gateway still reads after their callers have left. */
  readonly departures: Departures
  readonly limits: Limits<UsageEvent>
  /** True when the organisation's prepaid balance pays for calls on the platform's account, except for calls of trial keys. */
  readonly isBilling: boolean
  /** Returns the plan of a request and dials nothing. Throws `model_not_found` and every `no_route` error. */
  resolve(request: ResolveRequest): Plan
  /** Returns the route of the model that a reply names, when that model is dearer than the one that was asked for. Absent when replies are not checked. */
  dearerRoute?(asked: Route, model: string): Route | null
  /** Keeps conversations on their routes. Absent when they are not kept. */
  readonly sticky?: Pick<StickyRoutes, 'begin'> | undefined
  /** Returns the facts about an organisation that decide where its calls may go. The result is synchronous when it is cached. */
  orgRouting(orgId: number): OrgRouting | Promise<OrgRouting>
  /** Used only for organisations with a retention window. */
  readonly contentLog: Pick<ContentLog, 'keep' | 'keepFailure'>
  dialectOf(id: DialectId): Dialect
  /** The room for the replies of providers that this process keeps in memory. */
  readonly heldReplies: Pick<HeldReplies, 'open' | 'run'>
  /** Turns for calls with heavy bodies. */
  readonly heavyTurns: Pick<HeavyTurns, 'run'>
  /**
   * Does work in a turn of the call's organisation. Absent when the body is light. Without a signal of its own, the work gives up its place when the
   * caller leaves.
   */
  readonly inTurn?: (<T>(work: () => T, signal?: CancelSignal) => Promise<T>) | undefined
  /** The numbers of the body that a double cannot represent. Absent when there are none. */
  readonly exact?: ExactNumbers | undefined
  /** Makes large inline images smaller. */
  readonly imageScaler: Pick<ImageScaler, 'shrink'>
  /** Measures the length of recordings. */
  readonly audioLengths: Pick<AudioLengths, 'measure'>
  readonly observer: RouteObserver
  /** Authorises requests with credentials that expire. Absent when no provider takes any. */
  readonly identities?: Pick<Identities, 'of'>
  /** Absent when no metrics are kept. */
  readonly watch?: CallWatch | undefined
  /** Absent when calls are not traced. */
  readonly traces?: CallTraces | undefined
  /** How long the gateway waits for providers, in milliseconds: FIRST_BYTE_TIMEOUT_MS and WHOLE_REPLY_TIMEOUT_MS. */
  readonly timeouts: { readonly firstByteMs: number; readonly wholeReplyMs: number }
  readonly images: ImageSettings
  /** Records that a prompt is about to be sent to a route to have its tokens counted. Rejects when the record fails; the prompt is then not sent. */
  noteTokenCount(orgId: number, route: Route): Promise<void>
  /** Returns the organisation's agent with that id or exact name, or null. The result is synchronous when it is cached. */
  agentByLabel(orgId: number, label: string): NamedAgent | null | Promise<NamedAgent | null>
  /** The ended runs. Absent when no run can be ended. */
  readonly endedRuns?: Pick<EndedRuns, 'enter'>
  /** The runs with caps. Absent when no run has any. */
  readonly cappedRuns?: RunsOfCalls
  /** Throws when the caller was revoked since the call began. The pipeline calls it directly before each dial. */
  recheck(principal: BearerPrincipal): void
}
