import type { Model, RoutePrice } from '../../catalog/model.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import { plainUsage, type TokenUsage } from '../../wire/usage.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { audioTokensHeld, promptTokensMost, windowTokensOf } from '../prompt-most.ts'
import { asksLongCache } from './cache-time.ts'
import { priceHeld } from './price.ts'
import { thinksBesideLimit, thinksUnseen } from './thinks-unseen.ts'

/** The output tokens in the first hold of a stream. The hold is extended while the stream runs. */
export const firstStreamSliceTokens = 256
/** The largest extension of a stream's hold, in tokens. */
export const streamSliceMaxTokens = 2048
/** The most output tokens in the hold of a call without a stream. The output beyond them is the only cost that a cap does not cover. */
export const oneShotHoldMaxTokens = 4096
/** The output tokens in the first hold of a model with hidden thinking. */
export const reasoningHoldTokens = 8192
/**
 * The tokens that a model is assumed to think in a second of silence. The project chose a low number, because a stream ends when its hold does
 * not cover them.
 */
export const unseenTokensPerSecond = 50
/** The most tokens that a model is assumed to make in a second. A faster rate is a burst of the network. */
export const measuredTokensPerSecondMost = 500
/**
 * The UTF-8 bytes of output for one token, as for a prompt, so that no script is cheaper than another in a call that is left. The number is low,
 * so that estimates hold too much rather than too little.
 */
const charsPerToken = 3

/** Returns the estimated tokens of a number of UTF-8 bytes of output. */
export function tokensOfChars(chars: number): number {
  return Math.ceil(chars / charsPerToken)
}

/** Returns the tokens that a model with hidden thinking is assumed to have made in a time of silence. */
export function unseenTokensOf(silentMs: number): number {
  return Math.ceil((silentMs * unseenTokensPerSecond) / 1000)
}

const withAudio = (tokens: TokenUsage, audioTokens: number): TokenUsage => (audioTokens === 0 ? tokens : { ...tokens, audioTokens })

/**
 * Returns the usage for which a hold on a route is computed. It counts sound, and a prompt that is cached for the longer time, separately, because
 * they cost more than the rest of a prompt.
 */
export function heldUsage(tokens: TokenUsage, request: ParsedRequest, price: RoutePrice): TokenUsage {
  const heard = withAudio(tokens, audioTokensHeld(request, tokens.promptTokens))
  return price.cacheWriteLongUinrPerMtok === undefined || !asksLongCache(request) ? heard : { ...heard, cacheWriteLongTokens: tokens.promptTokens }
}

/** Returns the usage with at most `maxTokens` completion tokens. Tokens above the limit of the request are not charged. */
export function cappedAt(tokens: TokenUsage, maxTokens: number | null): TokenUsage {
  return maxTokens === null || tokens.completionTokens <= maxTokens ? tokens : { ...tokens, completionTokens: maxTokens }
}

/** The attempt for which tokens are computed. */
type Serving = Pick<Attempt, 'route' | 'model'>

/**
 * Returns the most output tokens that a strict budget holds for: the limit of the request, or else the most that the model can write for each answer. Where
 * thinking comes beside the limit, it is the most that the model can write in any case.
 */
export function outputCeiling(request: Pick<ParsedRequest, 'maxTokens' | 'answers' | 'asksThought'>, attempt: Serving): number {
  const { maxTokens, answers } = request
  const { maxOutputTokens } = attempt.model
  if (thinksBesideLimit(request, attempt)) return Math.max(maxTokens ?? 0, (maxOutputTokens ?? windowTokensOf(attempt)) * answers)
  return maxTokens ?? (maxOutputTokens ?? oneShotHoldMaxTokens) * answers
}

/** Returns the most output tokens that a provider can have made for a request. Infinity when neither the request nor the model has a limit. */
export function writtenMost(request: Parameters<typeof outputCeiling>[0], attempt: Serving | null): number {
  if (attempt !== null && request.maxTokens !== null) return outputCeiling(request, attempt)
  return request.maxTokens ?? (attempt?.model.maxOutputTokens ?? Number.POSITIVE_INFINITY) * request.answers
}

/** Returns the limit of a stream's hold, or null without a limit in the request. */
export const streamCeiling = (request: Parameters<typeof outputCeiling>[0], attempt: Serving): number | null =>
  request.maxTokens === null ? null : outputCeiling(request, attempt)

/** Returns the output tokens in the hold before the dial. Each of several answers may be as long as a single one. */
export function firstHoldTokens(
  kind: Pick<Kind, 'hasOutput'>,
  request: Pick<ParsedRequest, 'maxTokens' | 'answers' | 'stream' | 'asksThought'>,
  attempt: Serving,
  stream = request.stream,
): number {
  if (!kind.hasOutput) return 0
  const ceiling = outputCeiling(request, attempt)
  if (thinksUnseen(request, attempt.model)) return Math.min(ceiling, reasoningHoldTokens * request.answers)
  return Math.min(ceiling, stream ? firstStreamSliceTokens : oneShotHoldMaxTokens * request.answers)
}

/** Returns the output tokens of a short answer. Hidden thinking comes before the answer, so a short answer of such a model needs its whole first hold. */
function shortAnswerTokens(kind: Parameters<typeof firstHoldTokens>[0], request: Parameters<typeof firstHoldTokens>[1], attempt: Serving): number {
  const heldTokens = firstHoldTokens(kind, request, attempt)
  return thinksUnseen(request, attempt.model) ? heldTokens : Math.min(heldTokens, firstStreamSliceTokens * request.answers)
}

/**
 * Returns the output tokens that a last call may always have, for all of its answers together. Only the catalog says whether the model thinks. What
 * the request says about thinking would let a caller choose the amount.
 */
export const lastAnswerTokens = ({ reasoning }: Pick<Model, 'reasoning'>): number => (reasoning ? reasoningHoldTokens : firstStreamSliceTokens)

const costOf = ({ route }: Attempt, request: ParsedRequest, promptTokens: number, completionTokens: number, media = request.media): bigint => {
  const tokens = heldUsage(plainUsage(promptTokens, completionTokens), request, route.price)
  return priceHeld(route.price, media === undefined ? tokens : { ...tokens, media })
}

/** The amounts that a call may hold, in micro-rupees. */
export interface CallHold {
  /** The first hold on the dearest route of the plan. */
  readonly needUinr: bigint
  /** The worst case. A strict budget holds this amount instead of `needUinr`. */
  readonly worstUinr: bigint
  /** The price of a short answer after the most tokens that the prompt may be counted for. A strict budget that cannot hold this much refuses the call. */
  readonly leastUinr: bigint
  /**
   * The first hold with the most tokens that the prompt may be counted for, on the dearest route of the platform's account. Null when the plan
   * has no such route.
   */
  readonly debitUinr: bigint | null
  /** The output tokens of the first hold: the most of any route of the plan. */
  readonly outputTokens: number
}

/** Returns the price of a short answer. No limit shortens thinking that comes beside it, so the least is then the worst case. */
function leastOf(
  kind: Kind,
  request: ParsedRequest,
  attempt: Attempt,
  { mostTokens, need, worst }: { readonly mostTokens: number; readonly need: bigint; readonly worst: bigint },
): bigint {
  if (request.maxTokens !== null) return need
  return thinksBesideLimit(request, attempt) ? worst : costOf(attempt, request, mostTokens, shortAnswerTokens(kind, request, attempt))
}

/** Returns the amounts that a call holds before its dial. */
export function holdOf(kind: Kind, request: ParsedRequest, plan: Plan): CallHold {
  let needUinr = 0n
  let worstUinr = 0n
  let leastUinr = 0n
  let debitUinr: bigint | null = null
  let outputTokens = 0
  // Each attempt counts with the limits of its own model.
  for (const attempt of plan.attempts) {
    const needTokens = firstHoldTokens(kind, request, attempt)
    const worstTokens = kind.hasOutput ? outputCeiling(request, attempt) : 0
    const mostTokens = promptTokensMost(request, attempt)
    const need = costOf(attempt, request, request.promptTokens, needTokens)
    const isNeed = worstTokens === needTokens && mostTokens === request.promptTokens && request.mediaMost === undefined
    const worst = isNeed ? need : costOf(attempt, request, mostTokens, worstTokens, request.mediaMost ?? request.media)
    const least = leastOf(kind, request, attempt, { mostTokens, need, worst })
    // The hold of a stream is extended while it runs. A whole reply can come to its worst case, and the balance is money of the operator.
    const debit = request.stream ? costOf(attempt, request, mostTokens, needTokens) : worst
    if (need > needUinr) needUinr = need
    if (needTokens > outputTokens) outputTokens = needTokens
    if (least > leastUinr) leastUinr = least
    if (!attempt.byok && (debitUinr === null || debit > debitUinr)) debitUinr = debit
    if (worst > worstUinr) worstUinr = worst
  }
  return { needUinr, worstUinr, leastUinr, debitUinr, outputTokens }
}
