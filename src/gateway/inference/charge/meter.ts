import type { Clock } from '../../../platform/clock.ts'
import type { BearerPrincipal, CallPolicy } from '../../../platform/security/principal.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { Route } from '../../catalog/model.ts'
import type { Permit, RefusedBy } from '../../limits/engine/admission.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { Outcome, UsageEvent } from '../../usage/events/record.ts'
import type { Bill } from '../../wire/client-format.ts'
import { noUsage, plainUsage, type TokenUsage } from '../../wire/usage.ts'
import type { CallTrace } from '../call-trace.ts'
import type { CallWatch } from '../call-watch.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { readOnMs } from '../leaving/departures.ts'
import { withSound } from '../prompt-most.ts'
import { withCacheTime } from './cache-time.ts'
import {
  cappedAt,
  firstHoldTokens,
  heldUsage,
  measuredTokensPerSecondMost,
  outputTokensFor,
  priceHeld,
  priceTokens,
  unseenTokensOf,
  unseenTokensPerSecond,
} from './estimate.ts'
import { thinksUnseen } from './thinks-unseen.ts'

/** The agent that a call is charged to: the token's own, or the one that x-br-agent-id names. */
export interface ChargedAgent {
  readonly agentId: number | null
  readonly ancestorIds: readonly number[]
  /** A label that names no registered agent. */
  readonly label: string | null
  /** What binds this call: the rules of the key and of the charged agent. */
  readonly policies: readonly CallPolicy[]
}

export interface MeterInput {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly principal: BearerPrincipal
  readonly agent: ChargedAgent
  readonly requestId: string
  readonly startedAtMs: number
  /** The call holds an idempotency key. */
  readonly idempotent: boolean
  /** What the platform's account pays is taken from the prepaid balance. */
  readonly debits: boolean
  readonly watch?: CallWatch | undefined
  readonly trace?: CallTrace | undefined
}

/**
 * What a call is taken to have used that ends while a provider works on it, before its answer: the prompt has been read, what was
 * thought unseen has been thought, speech is being spoken. Pictures count when they are made, and none has come.
 */
function abandonedUsage({ promptTokens, media }: Pick<ParsedRequest, 'promptTokens' | 'media'>, completionTokens: number): TokenUsage {
  return { ...noUsage, promptTokens, completionTokens, ...(media === undefined ? {} : { media: { ...media, images: 0 } }) }
}

/** What is charged of what a provider tells, where it leaves out what is dearer than the rest. */
function asCharged(tokens: TokenUsage, { price }: Route, request: ParsedRequest): TokenUsage {
  const heard = withSound(tokens, request)
  return price.cacheWriteLongUinrPerMtok === undefined ? heard : withCacheTime(heard, request)
}

/** A reply that did not come in time. */
interface LateReply {
  readonly attempt: Attempt
  /** What the provider is taken to have made of it. */
  readonly tokens: TokenUsage
  readonly isCharged: boolean
}

/** From proven to be near to far away. */
const distances: Readonly<Record<UsageEvent['residency'], number>> = { india: 0, declared: 1, unknown: 2, global: 3 }

/** Where a prompt is that goes this way. What an organisation says of its own server is its word alone. */
export const placeOf = ({ residency, provider }: Route): UsageEvent['residency'] =>
  residency === 'india' && provider.userGiven === true ? 'declared' : residency

/** A call that was sent abroad before a provider in India answered has not stayed in India. */
function farther(before: UsageEvent['residency'] | null, next: UsageEvent['residency']): UsageEvent['residency'] {
  return before === null || distances[before] < distances[next] ? next : before
}

/** A stream tells how fast a model writes when it has come for so long. */
const measuredMinMs = 1000

const idempotent = { idempotent: true } as const
const none = {}

/** Keeps the account of one call: what it holds, what it would cost if it ended now, and ends it exactly once. */
export class Meter {
  readonly #permit: Permit<UsageEvent>
  readonly #input: MeterInput
  readonly #clock: Clock
  #attempt: Attempt | null = null
  #residency: UsageEvent['residency'] | null = null
  #dialed = false
  #isWorking = false
  #firstByteMs: number | null = null
  #lastProgressMs = 0
  #lastChunkMs = 0
  #firstChunkMs = 0
  #dialedAtMs = 0
  /** The first provider that did not answer in time. */
  #late: LateReply | null = null
  #ended = false

  constructor(permit: Permit<UsageEvent>, input: MeterInput, clock: Clock) {
    this.#permit = permit
    this.#input = input
    this.#clock = clock
  }

  get ended(): boolean {
    return this.#ended
  }

  /** True once a provider was called. */
  get dialed(): boolean {
    return this.#dialed
  }

  /** Whose call it is. */
  get orgId(): number {
    return this.#input.principal.orgId
  }

  /** The estimate of the prompt. */
  get promptTokens(): number {
    return this.#input.request.promptTokens
  }

  get attempt(): Attempt | null {
    return this.#attempt
  }

  /** Before a dial: when it resolves, a death of this process leaves a trace of the call. */
  opens(attempt: Attempt): Promise<void> {
    this.#attempt = attempt
    this.#residency = farther(this.#residency, placeOf(attempt.route))
    return this.#permit.open(this.#event(noUsage, true, 'interrupted', 200))
  }

  /** The provider served the model of another route: from here on the call costs what that one does. */
  priceAs({ price }: Route): void {
    if (this.#attempt !== null) this.#attempt = { ...this.#attempt, route: { ...this.#attempt.route, price } }
  }

  /** From here on the call has happened, whatever becomes of it. */
  dials(): void {
    this.#dialed = true
    this.#isWorking = true
    this.#dialedAtMs = this.#clock.monotonicMs()
    if (this.#attempt !== null) this.#input.trace?.dials(this.#attempt)
  }

  /**
   * The provider that was called has not answered in time, and may have made the reply. Returns whether that is charged in any case. Otherwise it is
   * charged only if the caller has left by then, because a caller who waits gets another route.
   */
  timesOut(isCharged: boolean): boolean {
    const attempt = this.#attempt
    if (attempt === null) return false
    const madeTokens = this.withinHold(unseenTokensOf(this.#clock.monotonicMs() - this.#dialedAtMs))
    this.#late ??= { attempt, tokens: abandonedUsage(this.#input.request, madeTokens), isCharged }
    return isCharged
  }

  /** The provider that was called has failed and says what it made before that, which it bills. It is charged if no other route answers. */
  failedWith(tokens: TokenUsage): void {
    if (this.#attempt !== null) this.#late ??= { attempt: this.#attempt, tokens, isCharged: true }
  }

  /** The provider that was called has failed: nobody works on the call until the next dial. `reason` is a class of failure or the provider's status. */
  routeFailed(reason: string): void {
    this.#isWorking = false
    if (this.#attempt !== null) this.#input.watch?.routeFailed(this.#attempt, reason)
    this.#input.trace?.routeFailed(reason)
  }

  /** The fields of a log line that name the call. */
  get logFields(): { readonly requestId: string; readonly traceId?: string } {
    const { requestId, trace } = this.#input
    return trace === undefined ? { requestId } : { requestId, traceId: trace.traceId }
  }

  firstByte(): void {
    if (this.#firstByteMs !== null) return
    this.#lastChunkMs = this.#clock.monotonicMs()
    this.#firstChunkMs = this.#lastChunkMs
    this.#firstByteMs = this.#lastChunkMs - this.#input.startedAtMs
  }

  /** How long it took until the reply began; null before. */
  get firstByteMs(): number | null {
    return this.#firstByteMs
  }

  /** How long the call has been under way. */
  get latencyMs(): number {
    return this.#clock.monotonicMs() - this.#input.startedAtMs
  }

  /** What the charged agent has left, by the tightest budget of it and its ancestors; null without one. Costs nothing: it is what this process knows. */
  get agentRemainingUinr(): bigint | null {
    return this.#input.agent.agentId === null ? null : this.#permit.agentRemainingUinr
  }

  /** Writes down at most once a second how far a stream has come. */
  progress(tokens: TokenUsage): void {
    const nowMs = this.#clock.monotonicMs()
    this.#lastChunkMs = nowMs
    if (this.#lastProgressMs !== 0 && nowMs - this.#lastProgressMs < 1000) return
    this.#lastProgressMs = nowMs
    this.#permit.progress(this.#event(cappedAt(tokens, this.#input.request.maxTokens), true, 'interrupted', 200))
  }

  /** When the last chunk of a stream came, in ms of the monotonic clock. */
  get lastChunkMs(): number {
    return this.#lastChunkMs
  }

  /** True while a provider that was dialed works on the call. */
  get isWorking(): boolean {
    return this.#isWorking
  }

  get #thinksUnseen(): boolean {
    return this.#attempt !== null && thinksUnseen(this.#input.request, this.#attempt.model)
  }

  /** What a model that thinks unseen is taken to have made since its dial; 0 for others. */
  get unseenTokens(): number {
    if (!this.#thinksUnseen || !this.#input.kind.hasOutput || !this.#isWorking) return 0
    return unseenTokensOf(this.#clock.monotonicMs() - this.#dialedAtMs)
  }

  /** Writes down what a call that its caller has left is taken to have used by now: a death of this process finds no less. */
  noteLeft(tokens: TokenUsage = this.#abandoned()): void {
    this.#lastProgressMs = 0
    const lastChunkMs = this.#lastChunkMs
    this.progress(tokens)
    this.#lastChunkMs = lastChunkMs
  }

  /** Tokens of prompt, between the estimate and `mostTokens`, that the hold pays for behind so many of output. */
  promptWithinHold(mostTokens: number, outputTokens: number): number {
    const attempt = this.#attempt
    let low = this.#input.request.promptTokens
    let high = attempt === null ? low : mostTokens
    while (attempt !== null && low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#priceHeld(attempt, plainUsage(middle, outputTokens)) <= this.#permit.heldUinr) low = middle
      else high = middle - 1
    }
    return low
  }

  /** An estimate of output, never above what is held for it: nobody is charged by a guess what no budget covers. */
  withinHold(outputTokens: number): number {
    return Math.min(outputTokens, this.coveredTokens(this.#input.request.promptTokens))
  }

  /**
   * How long a provider may be read on that has made so much output: as long as the hold covers what it may make unseen meanwhile, at the speed that
   * was measured.
   */
  readOnMs(outputTokens: number, tokensPerSecond = unseenTokensPerSecond, longestMs = readOnMs): number {
    if (!this.#thinksUnseen) return longestMs
    return Math.max(0, Math.min(longestMs, Math.floor((this.#roomTokens(outputTokens) * 1000) / tokensPerSecond)))
  }

  /** How fast the model writes, by what it has shown: never slower than what is taken for thought that nobody sees. */
  tokensPerSecond(shownTokens: number): number {
    const flowedMs = this.#lastChunkMs - this.#firstChunkMs
    if (this.#firstByteMs === null || flowedMs < measuredMinMs) return unseenTokensPerSecond
    return Math.min(measuredTokensPerSecondMost, Math.max(unseenTokensPerSecond, (shownTokens * 1000) / flowedMs))
  }

  /** Tokens of output that are held behind so many. Infinity where the most that the caller allows is held. */
  #roomTokens(outputTokens: number): number {
    const { promptTokens, maxTokens } = this.#input.request
    const covered = this.coveredTokens(promptTokens)
    return maxTokens !== null && covered >= maxTokens ? Number.POSITIVE_INFINITY : covered - outputTokens
  }

  /** Makes the hold cover these tokens on the route that is being served. */
  extendTo(tokens: TokenUsage): boolean | Promise<boolean> {
    const attempt = this.#attempt
    return attempt === null ? true : this.#permit.extendTo(this.#priceHeld(attempt, tokens), this.#input.debits && !attempt.byok)
  }

  #priceHeld({ route: { price } }: Attempt, tokens: TokenUsage): bigint {
    return priceHeld(price, heldUsage(tokens, this.#input.request, price))
  }

  /** Tokens of output that the hold covers behind so many of prompt. After a refused `extendTo` that is what was left. */
  coveredTokens(promptTokens: number): number {
    if (this.#attempt === null) return 0
    const { price } = this.#attempt.route
    return outputTokensFor(this.#permit.heldUinr, price, heldUsage(plainUsage(promptTokens, 0), this.#input.request, price))
  }

  /** What refused the last `extendTo`, or null. */
  get refusedBy(): RefusedBy | null {
    return this.#permit.refusedBy
  }

  /** What the caller is told that the call costs with this usage, on the route that serves it. */
  readonly billOf = (tokens: TokenUsage): Bill => {
    const attempt = this.#attempt
    const valueUinr =
      attempt === null ? 0n : priceTokens(attempt.route.price, cappedAt(asCharged(tokens, attempt.route, this.#input.request), this.#input.request.maxTokens))
    const value = inrFromUinr(valueUinr)
    return { cost_inr: this.#isFree(attempt) ? 0 : value, value_inr: value, provider: attempt?.route.provider.id ?? '' }
  }

  /** Ends the call with what it used. Returns the charged value once the record is in the journal. */
  settle(tokens: TokenUsage, estimated: boolean, outcome: Outcome, status: number): void | Promise<void> {
    if (this.#ended) return
    this.#ended = true
    const event = this.#event(cappedAt(tokens, this.#input.request.maxTokens), estimated || tokens.doubt !== undefined, outcome, status)
    if (tokens.doubt !== undefined && this.#attempt !== null) this.#input.watch?.usageDoubted(this.#attempt, tokens.doubt)
    this.#input.watch?.settled(event)
    this.#input.trace?.settled(event)
    return this.#permit.settle(event)
  }

  /** Ends a call that was dialed and failed. It costs nothing, unless a provider that did not answer in time is charged (`timesOut`). */
  settleFailed(status: number, outcome: Outcome = 'failed', hasLeft = false): void | Promise<void> {
    if (!this.#dialed) return this.release()
    const late = this.#late
    if (late !== null && (late.isCharged || hasLeft)) {
      this.#attempt = late.attempt
      return this.settle(late.tokens, true, outcome, status)
    }
    return this.settle(noUsage, false, outcome, status)
  }

  /**
   * Ends a call that was left or cut while a provider worked on it. The provider has read the prompt and will bill it, so it is
   * counted: otherwise whoever hangs up in time would use models for nothing, around every budget. `isUnknown`: nobody finds out what
   * the provider makes of it, so all the output that is held counts.
   */
  settleAbandoned(status: number, outcome: Outcome, isUnknown = false): void | Promise<void> {
    const attempt = this.#attempt
    if (!this.#isWorking || attempt === null) return this.settleFailed(status, outcome, true)
    const { kind, request } = this.#input
    const tokens = isUnknown ? abandonedUsage(request, firstHoldTokens(kind, request, attempt.model)) : this.#abandoned()
    return this.settle(tokens, true, outcome, status)
  }

  /** Ends a call whose reply was made and could not be taken: with the prompt and all output that is held for one without a stream. */
  settleUnread(status: number): void | Promise<void> {
    const attempt = this.#attempt
    if (attempt === null) return this.settleFailed(status)
    const { kind, request } = this.#input
    const { promptTokens, media } = request
    const tokens = plainUsage(promptTokens, firstHoldTokens(kind, request, attempt.model, false))
    return this.settle(media === undefined ? tokens : { ...tokens, media }, true, 'failed', status)
  }

  #abandoned(): TokenUsage {
    return abandonedUsage(this.#input.request, this.withinHold(this.unseenTokens))
  }

  /** Ends a call that never dialed. */
  release(): void {
    if (this.#ended) return
    this.#ended = true
    this.#permit.release()
  }

  /** The caller's own credential pays, or the key is on trial. */
  #isFree(attempt: Attempt | null): boolean {
    return attempt?.byok === true || this.#input.principal.isTrial === true
  }

  #event(tokens: TokenUsage, estimated: boolean, outcome: Outcome, status: number): UsageEvent {
    const { kind, request, principal, agent, requestId, startedAtMs } = this.#input
    const attempt = this.#attempt
    const valueUinr = attempt === null ? 0n : priceTokens(attempt.route.price, asCharged(tokens, attempt.route, request))
    return {
      id: this.#permit.eventId,
      atMs: this.#permit.admittedAtMs,
      requestId,
      orgId: principal.orgId,
      userId: principal.userId,
      keyId: principal.keyId,
      workspaceId: principal.workspaceId,
      agentId: agent.agentId,
      agentLabel: agent.label,
      kind: kind.usageKind,
      model: attempt?.route.modelId ?? request.modelId,
      provider: attempt?.route.provider.id ?? '',
      residency: this.#residency ?? 'unknown',
      streamed: request.stream,
      byok: attempt?.byok ?? false,
      status,
      outcome,
      promptTokens: tokens.promptTokens,
      completionTokens: tokens.completionTokens,
      cachedTokens: tokens.cachedTokens,
      cacheWriteTokens: tokens.cacheWriteTokens,
      reasoningTokens: tokens.reasoningTokens,
      images: tokens.media?.images ?? 0,
      audioSeconds: tokens.media?.audioSeconds ?? 0,
      characters: tokens.media?.characters ?? 0,
      estimated,
      valueUinr,
      costUinr: this.#isFree(attempt) ? 0n : valueUinr,
      latencyMs: Math.round(this.#clock.monotonicMs() - startedAtMs),
      firstByteMs: this.#firstByteMs === null ? null : Math.round(this.#firstByteMs),
      ...(this.#input.idempotent ? idempotent : none),
    }
  }
}
