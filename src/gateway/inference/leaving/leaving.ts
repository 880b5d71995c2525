/**
 * Handles a caller who leaves while a provider works. It decides whether and how long the provider is followed, and settles the call. Decision
 * 0380 gives the reasons.
 */
import { CallCutError, type CallOwners } from '../../../platform/loop/inflight.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import { firstHoldTokens, streamCeiling } from '../charge/estimate.ts'
import type { ChargedAgent, Meter } from '../charge/meter.ts'
import { thinksUnseen } from '../charge/thinks-unseen.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Answer } from '../dial.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { isPromptGuessed, promptTokensMost } from '../prompt-most.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import { StreamHold } from '../stream/stream-hold.ts'
import { Departure } from './departure.ts'
import { readOnLongestMs } from './departures.ts'
import { type Charging, leftUsage, readOn, readOnMsOf, settleUnread } from './read-on.ts'

/** The status of a call whose client left before an answer. It is only in the usage row; no client sees it. */
export const nobodyWaitsStatus = 499

/** A call whose caller may leave. */
export interface LeavableCall {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly plan: Plan
  readonly principal: BearerPrincipal
  readonly agent: ChargedAgent
  readonly meter: Meter
}

/**
 * Returns true when a provider is followed after the caller has left. An image provider of the catalog is followed. A provider is also followed
 * when it charges the operator for tokens that only the provider can count: hidden thinking, and pictures, sound and files of the prompt.
 */
function isWorthFollowing(kind: Kind, request: ParsedRequest, attempt: Attempt): boolean {
  const { model, route, byok } = attempt
  if (kind.modelKind === 'image') return route.provider.userGiven !== true
  return kind.hasOutput && !byok && (thinksUnseen(request, model) || isPromptGuessed(request, attempt))
}

/** Returns the signal that ends the call for its providers after its caller has left. Null when no provider of the plan is worth following. */
export function departureOf(call: LeavableCall, watch: Watched, deps: Pick<InferenceDeps, 'clock' | 'inflight' | 'departures' | 'log'>): Departure | null {
  const { kind, request, plan, principal, agent, meter } = call
  if (!plan.attempts.some(attempt => isWorthFollowing(kind, request, attempt))) return null
  const { clock, inflight, departures, log } = deps
  return new Departure(watch.signal, {
    clock,
    inflight,
    departures,
    orgId: principal.orgId,
    owners: ownersOf(principal, agent),
    followMs: () => {
      const { attempt } = meter
      if (attempt === null || meter.ended || !meter.isWorking || !isWorthFollowing(kind, request, attempt)) return 0
      if (kind.modelKind === 'image') return Number.POSITIVE_INFINITY
      // A whole reply reports its usage in any case, which is charged like that of a caller who waits. So its hold does not limit the time.
      return request.stream ? meter.readOnMs(meter.unseenTokens) : readOnLongestMs
    },
    recheck() {
      watch.recheck()
      return watch.isNamed ? watch.confirm() : undefined
    },
    onFollowed() {
      if (meter.firstByteMs === null) meter.noteLeft()
    },
    onListenerError: error => log.error('the end of a left call failed', { ...meter.logFields, error }),
  })
}

/** The part of the call's watch that is needed here. */
interface Watched {
  readonly isNamed: boolean
  readonly signal: ConstructorParameters<typeof Departure>[0]
  recheck(): void
  confirm(): void | Promise<void>
}

/** Returns the owners whose revocation ends the call: the credential and the charged agent with its ancestors. */
function ownersOf(principal: BearerPrincipal, { agentId, ancestorIds }: ChargedAgent): CallOwners {
  const agentIds = agentId === null ? [] : [agentId, ...ancestorIds]
  return { agentIds, keyId: principal.keyId, ...(principal.kind === 'agent' ? { tokenIds: principal.tokenIds } : {}) }
}

/** Settles a call whose caller left before the reply began, with the provider's result. */
export async function settleLeft(answer: Answer, call: LeavableCall, departure: Departure, deps: Pick<InferenceDeps, 'clock'>): Promise<void> {
  const { meter } = call
  const outcome = departure.reason instanceof CallCutError ? 'cut' : 'client_gone'
  switch (answer.kind) {
    case 'whole':
      return meter.settle(answer.usage, answer.estimated, outcome, nobodyWaitsStatus)
    case 'stream': {
      const charging = chargingOf(answer, call, departure, deps)
      if (charging.isFollowed) departure.onCut = () => undefined
      await readOn(answer, departure, charging)
      answer.body.destroy()
      answer.held.release()
      answer.served()
      return settleUnread(answer, charging, outcome, nobodyWaitsStatus)
    }
    case 'bytes':
      answer.body.destroy()
      return meter.settle(answer.reading.usage(), !answer.reading.exact, outcome, nobodyWaitsStatus)
    case 'client-error':
      return meter.settleFailed(answer.status)
  }
}

/** Returns the data by which a stream is charged. When its provider is worth following, the departure uses the usage of the stream from here on. */
export function chargingOf(answer: StreamAnswer, call: LeavableCall, departure: Departure | null, deps: Pick<InferenceDeps, 'clock'>): Charging {
  const { kind, request, meter } = call
  const { attempt } = answer
  const isFollowed = departure !== null && isWorthFollowing(kind, request, attempt)
  const charging = {
    meter,
    hold: streamHoldOf(answer, call, deps),
    thinksUnseen: thinksUnseen(request, attempt.model),
    promptMostTokens: isFollowed ? promptTokensMost(request, attempt) : request.promptTokens,
    departure,
    isFollowed,
  }
  if (isFollowed) followStream(departure, answer, charging)
  return charging
}

/** Makes the departure use the usage of the stream. A settled stream is not followed, although its last bytes may still wait for the caller. */
function followStream(departure: Departure, answer: StreamAnswer, charging: Charging): void {
  departure.followMs = () => (charging.meter.ended ? 0 : readOnMsOf(answer, charging))
  departure.onFollowed = () => charging.meter.noteLeft(leftUsage(answer, charging))
}

/** Returns the hold of a stream. For a model with hidden thinking it also covers the thinking before the first chunk. */
function streamHoldOf({ attempt }: StreamAnswer, { kind, meter }: LeavableCall, { clock }: Pick<InferenceDeps, 'clock'>): StreamHold {
  const { request } = meter
  const firstTokens = firstHoldTokens(kind, request, attempt)
  return new StreamHold(meter, clock, request.promptTokens, firstTokens, streamCeiling(request, attempt), meter.unseenTokens)
}
