import type { Clock } from '../../platform/clock.ts'
import { inrFromUinr } from '../../platform/money.ts'
import type { BearerPrincipal, CallPolicy } from '../../platform/principal.ts'
import type { Route } from '../catalog/model.ts'
import type { Permit, RefusedBy } from '../limits/admission.ts'
import type { Attempt } from '../routing/plan.ts'
import type { Outcome, UsageEvent } from '../usage/record.ts'
import type { Bill } from '../wire/client-format.ts'
import { noUsage, type TokenUsage } from '../wire/usage.ts'
import type { CallTrace } from './call-trace.ts'
import type { CallWatch } from './call-watch.ts'
import { cappedAt, outputTokensFor, priceHeld, priceTokens } from './estimate.ts'
import type { Kind } from './kinds/kind.ts'
import type { ParsedRequest } from './kinds/request.ts'

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

/** What a call is taken to have used that ends while a provider works on it, before its answer: the prompt has been read, the units are being made. */
export function abandonedUsage({ promptTokens, media }: Pick<ParsedRequest, 'promptTokens' | 'media'>): TokenUsage {
  return { ...noUsage, promptTokens, ...(media === undefined ? {} : { media }) }
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

  get attempt(): Attempt | null {
    return this.#attempt
  }

  /** Before a dial: when it resolves, a death of this process leaves a trace of the call. */
  opens(attempt: Attempt): Promise<void> {
    this.#attempt = attempt
    this.#residency = farther(this.#residency, placeOf(attempt.route))
    return this.#permit.open(this.#event(noUsage, true, 'interrupted', 200))
  }

  /** From here on the call has happened, whatever becomes of it. */
  dials(): void {
    this.#dialed = true
    this.#isWorking = true
    if (this.#attempt !== null) this.#input.trace?.dials(this.#attempt)
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
    this.#firstByteMs ??= this.#clock.monotonicMs() - this.#input.startedAtMs
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
    if (this.#lastProgressMs !== 0 && nowMs - this.#lastProgressMs < 1000) return
    this.#lastProgressMs = nowMs
    this.#permit.progress(this.#event(cappedAt(tokens, this.#input.request.maxTokens), true, 'interrupted', 200))
  }

  /** Makes the hold cover these tokens on the route that is being served. */
  cover(tokens: TokenUsage): boolean | Promise<boolean> {
    const attempt = this.#attempt
    return attempt === null || this.#permit.cover(priceHeld(attempt.route.price, tokens), this.#input.debits && !attempt.byok)
  }

  /** Tokens of output that the hold covers behind so many of prompt. After a refused `cover` that is what was left. */
  coveredTokens(promptTokens: number): number {
    return this.#attempt === null ? 0 : outputTokensFor(this.#permit.heldUinr, this.#attempt.route.price, promptTokens)
  }

  /** What refused the last `cover`, or null. */
  get refusedBy(): RefusedBy | null {
    return this.#permit.refusedBy
  }

  /** What the caller is told that the call costs with this usage, on the route that serves it. */
  readonly billOf = (tokens: TokenUsage): Bill => {
    const attempt = this.#attempt
    const valueUinr = attempt === null ? 0n : priceTokens(attempt.route.price, cappedAt(tokens, this.#input.request.maxTokens))
    const value = inrFromUinr(valueUinr)
    return { cost_inr: this.#isFree(attempt) ? 0 : value, value_inr: value, provider: attempt?.route.provider.id ?? '' }
  }

  /** Ends the call with what it used. Returns the charged value once the record is in the journal. */
  settle(tokens: TokenUsage, estimated: boolean, outcome: Outcome, status: number): void | Promise<void> {
    if (this.#ended) return
    this.#ended = true
    const event = this.#event(cappedAt(tokens, this.#input.request.maxTokens), estimated, outcome, status)
    this.#input.watch?.settled(event)
    this.#input.trace?.settled(event)
    return this.#permit.settle(event)
  }

  /** Ends a call that cost nothing: dialed and failed. It stays in the usage rows with zero tokens. */
  settleFailed(status: number, outcome: Outcome = 'failed'): void | Promise<void> {
    if (!this.#dialed) return this.release()
    return this.settle(noUsage, false, outcome, status)
  }

  /**
   * Ends a call that was left or cut while a provider worked on it. The provider has read the prompt and will bill it, so it is
   * counted: otherwise whoever hangs up in time would use models for nothing, around every budget.
   */
  settleAbandoned(status: number, outcome: Outcome): void | Promise<void> {
    if (!this.#isWorking) return this.settleFailed(status, outcome)
    return this.settle(abandonedUsage(this.#input.request), true, outcome, status)
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
    const valueUinr = attempt === null ? 0n : priceTokens(attempt.route.price, tokens)
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
