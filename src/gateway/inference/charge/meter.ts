import type { Clock } from '../../../platform/clock.ts'
import type { BearerPrincipal, CallPolicy } from '../../../platform/security/principal.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { Route } from '../../catalog/model.ts'
import type { Permit, RefusedBy } from '../../limits/engine/admission.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { Outcome, RunOfCall, UsageEvent } from '../../usage/events/record.ts'
import { TriedText } from '../../usage/events/tried-routes.ts'
import type { Bill } from '../../wire/client-format.ts'
import { noUsage, plainUsage, type TokenUsage } from '../../wire/usage.ts'
import type { CallTrace } from '../call-trace.ts'
import type { CallWatch } from '../call-watch.ts'
import type { PanelPart } from '../deps.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { readOnMs } from '../leaving/departures.ts'
import { withSound } from '../prompt-most.ts'
import { charged } from './believed.ts'
import { withCacheTime } from './cache-time.ts'
import { firstHoldTokens, heldUsage, measuredTokensPerSecondMost, streamCeiling, unseenTokensOf, unseenTokensPerSecond, writtenMost } from './estimate.ts'
import { outputTokensFor, priceHeld, priceLeft, priceTokens } from './price.ts'
import { farther, placeOf } from './residency.ts'
import { thinksUnseen } from './thinks-unseen.ts'

/** The agent that a call is charged to: the agent of the token, or the agent that `x-br-agent-id` names. */
export interface ChargedAgent {
  readonly agentId: number | null
  readonly ancestorIds: readonly number[]
  /** A label that names no registered agent, or an agent that the key may not act for. */
  readonly label: string | null
  /** The policies that bind this call: those of the key and of the charged agent. */
  readonly policies: readonly CallPolicy[]
}

export interface MeterInput {
  readonly kind: Kind
  readonly request: ParsedRequest
  /** The request for attempts that the prepaid balance pays for. Absent when it is the same. */
  readonly boundRequest?: ParsedRequest
  readonly principal: BearerPrincipal
  readonly agent: ChargedAgent
  readonly requestId: string
  readonly startedAtMs: number
  /** True when the call has an idempotency key. */
  readonly idempotent: boolean
  /** The run of the call. Null or absent when the call names none. */
  readonly run?: RunOfCall | null
  /** The tags of the call, as its event keeps them. Null or absent: none. */
  readonly tags?: string | null
  /** The image panel that the call is a part of. */
  readonly part?: PanelPart | undefined
  /** True when the prepaid balance pays for the platform's account. */
  readonly debits: boolean
  readonly watch?: CallWatch | undefined
  readonly trace?: CallTrace | undefined
}

/**
 * Returns the assumed usage of a call that ends before its answer while a provider works on it. The provider has read the prompt, has made the
 * hidden thinking and is speaking the text. Pictures count only when they are delivered, so none counts, unless nobody finds out what is made.
 */
function abandonedUsage({ promptTokens, media }: Pick<ParsedRequest, 'promptTokens' | 'media'>, completionTokens: number, isUnknown = false): TokenUsage {
  return {
    ...noUsage,
    promptTokens,
    completionTokens,
    isPromptGuessed: true,
    ...(media === undefined ? {} : { media: isUnknown ? media : { ...media, images: 0 } }),
  }
}

/** Returns the usage to charge. Where the provider does not report tokens that are dearer than the rest, the request decides. */
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
  /** True when the provider has not reported the tokens. */
  readonly isGuess: boolean
}

/** The outcomes of calls that end before their provider's report because of their caller or its organisation. */
const leavings: ReadonlySet<Outcome> = new Set<Outcome>(['client_gone', 'cut'])

/** The time after which a stream shows how fast the model writes. */
const measuredMinMs = 1000

/** Keeps the account of one call. It knows the hold of the call and its cost so far, and ends the call exactly once. */
export class Meter {
  readonly #permit: Permit<UsageEvent>
  readonly #input: MeterInput
  readonly #clock: Clock
  #attempt: Attempt | null = null
  #residency: UsageEvent['residency'] | null = null
  /** How many providers were called. */
  #dials = 0
  /** The attempts that failed. Null for almost every call. */
  #tried: TriedText | null = null
  #isWorking = false
  #firstByteMs: number | null = null
  #lastProgressMs = 0
  #lastChunkMs = 0
  #firstChunkMs = 0
  #dialedAtMs = 0
  /** The reply that is charged when no route answers. Null while no provider has made one that the caller does not get. */
  #late: LateReply | null = null
  #ended = false
  #settledCostUinr: bigint | null = null
  /** True when another call of the same panel is the call of the run. Null before the first dial. */
  #isPart: boolean | null = null

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
    return this.#dials > 0
  }

  /** The organisation of the call. */
  get orgId(): number {
    return this.#input.principal.orgId
  }

  /** The run of the call, or null. */
  get runId(): string | null {
    return this.#input.run?.runId ?? null
  }

  /** The estimated tokens of the prompt. */
  get promptTokens(): number {
    return this.request.promptTokens
  }

  get attempt(): Attempt | null {
    return this.#attempt
  }

  /** The request as the current attempt gets it. The balance bounds only attempts that it pays for. */
  get request(): ParsedRequest {
    const { request, boundRequest } = this.#input
    return boundRequest === undefined || this.#attempt === null || this.#attempt.byok ? request : boundRequest
  }

  /** Notes the attempt before its dial. When the promise resolves, the journal records the call even if this process dies. */
  opens(attempt: Attempt): Promise<void> {
    this.#attempt = attempt
    this.#isPart ??= this.#input.part?.isPart() ?? false
    this.#residency = farther(this.#residency, placeOf(attempt.route))
    return this.#permit.open(this.#event(noUsage, true, 'interrupted', 200))
  }

  /** Notes that the provider served the model of another route. From here on the call has that route's price. */
  priceAs({ price }: Route): void {
    if (this.#attempt !== null) this.#attempt = { ...this.#attempt, route: { ...this.#attempt.route, price } }
  }

  /** Notes that the provider is called. From here on the call counts, whatever its result is. */
  dials(): void {
    this.#dials++
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
    this.#noteLate({ attempt, tokens: this.#abandoned(), isCharged, isGuess: true })
    return isCharged
  }

  /** The provider that was called has failed and says what it made before that, which it bills. It is charged if no other route answers. */
  failedWith(tokens: TokenUsage): void {
    if (this.#attempt !== null) this.#noteLate({ attempt: this.#attempt, tokens, isCharged: true, isGuess: false })
  }

  /** Keeps the first reply that is charged, otherwise the first one. */
  #noteLate(late: LateReply): void {
    if (this.#late === null || (late.isCharged && !this.#late.isCharged)) this.#late = late
  }

  /** Notes that the called provider has failed. No provider works on the call until the next dial. `reason` is a class of failure or the provider's status. */
  routeFailed(reason: string): void {
    this.#isWorking = false
    if (this.#attempt !== null) {
      this.#noteTried(this.#attempt, reason)
      this.#input.watch?.routeFailed(this.#attempt, reason)
    }
    this.#input.trace?.routeFailed(reason)
  }

  #noteTried({ route, byok }: Attempt, reason: string): void {
    this.#tried ??= new TriedText()
    const ms = this.#clock.monotonicMs() - this.#dialedAtMs
    this.#tried.add({ provider: route.provider.id, model: route.modelId, residency: placeOf(route), byok, reason, ms })
  }

  /** The fields that name the call in a log line. */
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

  /** The milliseconds until the reply began, or null before that. */
  get firstByteMs(): number | null {
    return this.#firstByteMs
  }

  /** The milliseconds since the call began. */
  get latencyMs(): number {
    return this.#clock.monotonicMs() - this.#input.startedAtMs
  }

  /** What the budgets of the charged agent and the caps of the run leave. Reading it is cheap: these are figures that this process already has. */
  get left(): Pick<Permit, 'agentRemainingUinr' | 'runSpentUinr' | 'runRemainingUinr' | 'runCallsRemaining'> {
    return this.#permit
  }

  /**
   * Records the progress of a stream in the journal, at most once a second. A function is called only when there is something to record. After the
   * end of the call nothing is recorded.
   */
  progress(usage: TokenUsage | (() => TokenUsage)): void {
    if (this.#ended) return
    const nowMs = this.#clock.monotonicMs()
    if (this.#lastProgressMs !== 0 && nowMs - this.#lastProgressMs < 1000) {
      this.#lastChunkMs = nowMs
      return
    }
    const tokens = typeof usage === 'function' ? usage() : usage
    this.#lastChunkMs = nowMs
    this.#lastProgressMs = nowMs
    this.#permit.progress(this.#event(charged(tokens, this.request, this.#attempt, true), true, 'interrupted', 200))
  }

  /** The time of the last chunk of a stream, in milliseconds of the monotonic clock. */
  get lastChunkMs(): number {
    return this.#lastChunkMs
  }

  /** True while a dialed provider works on the call. */
  get isWorking(): boolean {
    return this.#isWorking
  }

  get #thinksUnseen(): boolean {
    return this.#attempt !== null && thinksUnseen(this.request, this.#attempt.model)
  }

  /** The tokens that a provider is assumed to have made since its dial: of hidden thinking, and of a reply that comes whole. 0 for other calls. */
  get unseenTokens(): number {
    const { kind } = this.#input
    const { request } = this
    if (!kind.hasOutput || !this.#isWorking || (request.stream && !this.#thinksUnseen)) return 0
    const madeTokens = unseenTokensOf(this.#clock.monotonicMs() - this.#dialedAtMs)
    return request.stream ? madeTokens : madeTokens * request.answers
  }

  /** Records the assumed usage of a call that its caller has left, so that a death of this process does not lose it. */
  noteLeft(tokens: TokenUsage = abandonedUsage(this.request, this.withinHold(this.unseenTokens))): void {
    this.#lastProgressMs = 0
    const lastChunkMs = this.#lastChunkMs
    this.progress(tokens)
    this.#lastChunkMs = lastChunkMs
  }

  /** Returns the prompt tokens, between the estimate and `mostTokens`, that the hold pays for together with the given output tokens. */
  promptWithinHold(mostTokens: number, outputTokens: number): number {
    const attempt = this.#attempt
    let low = this.request.promptTokens
    let high = attempt === null ? low : mostTokens
    while (attempt !== null && low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#priceHeld(attempt, plainUsage(middle, outputTokens)) <= this.#permit.heldUinr) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Returns an estimate of output, limited to the held output. A guess never charges more than a budget covers. */
  withinHold(outputTokens: number): number {
    return Math.min(outputTokens, this.coveredTokens(this.request.promptTokens))
  }

  /**
   * Returns the milliseconds for which a provider may still be read after the given output. The hold must cover the hidden output of that time,
   * at the measured speed.
   */
  readOnMs(outputTokens: number, tokensPerSecond = unseenTokensPerSecond): number {
    if (!this.#thinksUnseen) return readOnMs
    return Math.max(0, Math.min(readOnMs, Math.floor((this.#roomTokens(outputTokens) * 1000) / tokensPerSecond)))
  }

  /** Returns the speed of the model by its shown output. It is never slower than the assumed speed of hidden thinking. */
  tokensPerSecond(shownTokens: number): number {
    const flowedMs = this.#lastChunkMs - this.#firstChunkMs
    if (this.#firstByteMs === null || flowedMs < measuredMinMs) return unseenTokensPerSecond
    return Math.min(measuredTokensPerSecondMost, Math.max(unseenTokensPerSecond, (shownTokens * 1000) / flowedMs))
  }

  /** Returns the output tokens that the hold covers beyond the given ones. Infinity when the hold covers the whole limit of the request. */
  #roomTokens(outputTokens: number): number {
    const { request } = this
    const covered = this.coveredTokens(request.promptTokens)
    const ceiling = this.#attempt === null ? request.maxTokens : streamCeiling(request, this.#attempt)
    return ceiling !== null && covered >= ceiling ? Number.POSITIVE_INFINITY : covered - outputTokens
  }

  /** Extends the hold to cover this usage on the route that serves the call. Returns false when a budget refuses. */
  extendTo(tokens: TokenUsage): boolean | Promise<boolean> {
    const attempt = this.#attempt
    return attempt === null ? true : this.#permit.extendTo(this.#priceHeld(attempt, tokens), this.#input.debits && !attempt.byok, tokens)
  }

  #priceHeld({ route: { price } }: Attempt, tokens: TokenUsage): bigint {
    return priceHeld(price, heldUsage(tokens, this.request, price))
  }

  /** Returns the output tokens that the hold covers after the given prompt tokens. After a refused `extendTo` the hold includes all that was left. */
  coveredTokens(promptTokens: number): number {
    if (this.#attempt === null) return 0
    const { price } = this.#attempt.route
    return outputTokensFor(this.#permit.heldUinr, price, heldUsage(plainUsage(promptTokens, 0), this.request, price))
  }

  /** The budget or balance that refused the last `extendTo`, or null. */
  get refusedBy(): RefusedBy | null {
    return this.#permit.refusedBy
  }

  /** Returns the cost of this usage on the serving route, as the caller sees it. */
  billOf(tokens: TokenUsage): Bill {
    const attempt = this.#attempt
    const valueUinr =
      attempt === null ? 0n : priceTokens(attempt.route.price, charged(asCharged(tokens, attempt.route, this.request), this.request, attempt, false))
    const value = inrFromUinr(valueUinr)
    return { cost_inr: this.#isFree(attempt) ? 0 : value, value_inr: value, provider: attempt?.route.provider.id ?? '' }
  }

  /** Returns the cost of the settled call in rupees; before its end, the cost of this usage. */
  costInrOf(tokens: TokenUsage): number {
    return this.#settledCostUinr === null ? this.billOf(tokens).cost_inr : inrFromUinr(this.#settledCostUinr)
  }

  /** Ends the call with its usage. A returned promise resolves once the record is in the journal. */
  settle(tokens: TokenUsage, estimated: boolean, outcome: Outcome, status: number): void | Promise<void> {
    if (this.#ended) return
    this.#ended = true
    const event = this.#event(charged(tokens, this.request, this.#attempt, estimated), estimated || tokens.doubt !== undefined, outcome, status)
    this.#settledCostUinr = event.costUinr
    if (tokens.doubt !== undefined && this.#attempt !== null) this.#input.watch?.usageDoubted(this.#attempt, tokens.doubt)
    this.#input.watch?.settled(event)
    this.#input.trace?.settled(event)
    return this.#permit.settle(event)
  }

  /** Ends a call that failed and costs nothing. If it was dialed, it stays in the usage rows with zero tokens. */
  settleFailed(status: number, outcome: Outcome = 'failed', hasLeft = false): void | Promise<void> {
    if (this.#dials === 0) return this.release()
    const late = this.#late
    if (late !== null && (late.isCharged || hasLeft)) {
      this.#attempt = late.attempt
      return late.isGuess ? this.settleGuess(late.tokens, outcome, status) : this.settle(late.tokens, true, outcome, status)
    }
    return this.settle(noUsage, false, outcome, status)
  }

  /**
   * Ends a call that was left or cut while a provider worked on it. The provider has read the prompt and bills it, so the prompt is charged.
   * Otherwise callers could avoid every budget by hanging up in time. `isUnknown` is true when the gateway cannot see the provider's output; all
   * held output, and every picture that was asked for, is then charged (decision 0488).
   */
  settleAbandoned(status: number, outcome: Outcome, isUnknown = false): void | Promise<void> {
    const attempt = this.#attempt
    if (!this.#isWorking || attempt === null) return this.settleFailed(status, outcome, true)
    const { kind } = this.#input
    const { request } = this
    if (isUnknown) return this.settle(abandonedUsage(request, firstHoldTokens(kind, request, attempt), true), true, outcome, status)
    return this.settleGuess(this.#abandoned(), outcome, status)
  }

  /**
   * Ends a call whose reply was made but could not be read. It charges what the provider reports. Without a report, it charges the prompt and all
   * output that a call without a stream holds.
   */
  settleUnread(status: number, reported: TokenUsage | null = null): void | Promise<void> {
    const attempt = this.#attempt
    if (attempt === null) return this.settleFailed(status)
    const { kind } = this.#input
    const { request } = this
    const { promptTokens, media } = request
    const tokens = reported ?? plainUsage(promptTokens, firstHoldTokens(kind, request, attempt, false))
    return this.settle(media === undefined ? tokens : { ...tokens, media }, reported === null, 'failed', status)
  }

  /**
   * Returns what the called provider is taken to have made so far. For a stream that is within the hold. A whole reply can be longer than its hold,
   * so `settleGuess` asks the budgets.
   */
  #abandoned(): TokenUsage {
    const { request } = this
    if (request.stream) return abandonedUsage(request, this.withinHold(this.unseenTokens))
    return abandonedUsage(request, Math.min(this.unseenTokens, writtenMost(request, this.#attempt)))
  }

  /** Settles a guess. The hold is first extended to it, and it is charged as far as the budgets cover it. Decision 0504 gives the reasons. */
  settleGuess(tokens: TokenUsage, outcome: Outcome, status: number): void | Promise<void> {
    const end = (isCovered: boolean): void | Promise<void> =>
      this.settle(isCovered ? tokens : { ...tokens, completionTokens: this.withinHold(tokens.completionTokens) }, true, outcome, status)
    const covered = this.extendTo(tokens)
    // When the database cannot be asked, the guess counts as not covered.
    return covered instanceof Promise ? covered.then(end, () => end(false)) : end(covered)
  }

  /** Ends a call that never dialed. */
  release(): void {
    if (this.#ended) return
    this.#ended = true
    this.#permit.release()
  }

  /** True when the caller's own credential pays or the key is on trial. */
  #isFree(attempt: Attempt | null): boolean {
    return attempt?.byok === true || this.#input.principal.isTrial === true
  }

  #event(tokens: TokenUsage, estimated: boolean, outcome: Outcome, status: number): UsageEvent {
    const { kind, principal, agent, requestId, startedAtMs, run, tags } = this.#input
    const { request } = this
    const attempt = this.#attempt
    // The record before a dial has no usage yet.
    const priceOf = leavings.has(outcome) ? priceLeft : priceTokens
    const valueUinr = attempt === null || tokens === noUsage ? 0n : priceOf(attempt.route.price, asCharged(tokens, attempt.route, request))
    const event: UsageEvent = {
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
      ...(tokens.media?.searches === undefined ? {} : { searches: tokens.media.searches }),
      estimated,
      valueUinr,
      costUinr: this.#isFree(attempt) ? 0n : valueUinr,
      latencyMs: Math.round(this.#clock.monotonicMs() - startedAtMs),
      firstByteMs: this.#firstByteMs === null ? null : Math.round(this.#firstByteMs),
    }
    const ofRun = run ? { ...event, ...run, ...(this.#isPart === true ? { runPart: true as const } : {}) } : event
    const labelled = tags ? { ...ofRun, tags } : ofRun
    const complete = this.#tried === null ? labelled : { ...labelled, tried: this.#tried.textOf(this.#dials) }
    return this.#input.idempotent ? { ...complete, idempotent: true } : complete
  }
}
