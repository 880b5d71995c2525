import { priceUnits } from '../../../platform/values/money.ts'
import type { Model, RoutePrice } from '../../catalog/model.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import { type MediaUsage, plainUsage, type TokenUsage } from '../../wire/usage.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { audioTokensHeld, promptTokensMost } from '../prompt-most.ts'
import { asksLongCache } from './cache-time.ts'
import { thinksUnseen } from './thinks-unseen.ts'

/** Output tokens that a stream holds money for at first; extended while it runs. */
export const firstStreamSliceTokens = 256
/** Largest extension of a stream's hold. */
export const streamSliceMaxTokens = 2048
/** Most output tokens that a call without a stream is held for. What it costs beyond is the one thing a cap does not cover. */
export const oneShotHoldMaxTokens = 4096
/** First hold of a model that thinks unseen. */
export const reasoningHoldTokens = 8192
/** Tokens that a model is taken to think in a second of silence: on the low side, because a stream that they leave uncovered ends. Ours. */
export const unseenTokensPerSecond = 50
/** Most tokens that a model is taken to make in a second: faster ones are bursts of a network. */
export const measuredTokensPerSecondMost = 500
/** One token per so many UTF-8 bytes of output, as of a prompt, so that no script is cheaper to leave than another: on the low side, so that estimates err towards holding too much. */
const charsPerToken = 3

/** Tokens that so many UTF-8 bytes of output are taken for. */
export function tokensOfChars(chars: number): number {
  return Math.ceil(chars / charsPerToken)
}

/** Tokens that a model which thinks unseen is taken to have made in so much silence. */
export function unseenTokensOf(silentMs: number): number {
  return Math.ceil((silentMs * unseenTokensPerSecond) / 1000)
}

/** What tokens cost on a route: micro-rupees, rounded half up once. Cached prompt tokens are part of the prompt and never counted twice. */
export function priceTokens(price: RoutePrice, tokens: TokenUsage): bigint {
  // Sound has one price, read from a cache or not.
  const audio = price.audioInputUinrPerMtok === undefined ? 0 : Math.min(tokens.audioTokens ?? 0, tokens.promptTokens)
  const textTokens = tokens.promptTokens - audio
  const cached = price.cachedInputUinrPerMtok === null ? 0 : Math.min(tokens.cachedTokens, textTokens)
  const cacheWrite = hasWritePrice(price) ? Math.min(tokens.cacheWriteTokens, textTokens - cached) : 0
  const cacheWriteLong = price.cacheWriteLongUinrPerMtok === undefined ? 0 : Math.min(tokens.cacheWriteLongTokens ?? 0, cacheWrite)
  const parts = [
    { units: textTokens - cached - cacheWrite, uinrPerMtok: price.inputUinrPerMtok },
    { units: cached, uinrPerMtok: price.cachedInputUinrPerMtok ?? 0n },
    { units: tokens.completionTokens, uinrPerMtok: price.outputUinrPerMtok },
  ]
  if (audio > 0) parts.push({ units: audio, uinrPerMtok: price.audioInputUinrPerMtok ?? 0n })
  if (cacheWrite > 0) {
    parts.push({ units: cacheWrite - cacheWriteLong, uinrPerMtok: price.cacheWriteUinrPerMtok ?? price.inputUinrPerMtok })
    parts.push({ units: cacheWriteLong, uinrPerMtok: price.cacheWriteLongUinrPerMtok ?? 0n })
  }
  const { media } = tokens
  if (media !== undefined) {
    const perImage = pricePerImage(price, media)
    parts.push({ units: media.images, uinrPerMtok: perImage * 1_000_000n })
    const inputs = media.images > 0 ? (media.inputs ?? 0) : 0
    if (inputs > 0) parts.push({ units: inputs, uinrPerMtok: (price.uinrPerInputImage ?? 0n) * 1_000_000n })
    parts.push({ units: media.audioSeconds + media.characters, uinrPerMtok: price.inputUinrPerMtok })
  }
  return priceUnits(parts)
}

const hasWritePrice = ({ cacheWriteUinrPerMtok, cacheWriteLongUinrPerMtok }: RoutePrice): boolean =>
  cacheWriteUinrPerMtok !== null || cacheWriteLongUinrPerMtok !== undefined

/**
 * A picture that is asked for dearer, or may have become dearer, has the route's price for that where there is one. So has one from given pictures that
 * have no price of their own: pictures are metered as they are delivered, so what reading the given ones costs is in the price of those.
 */
function pricePerImage({ uinrPerImage, uinrPerImageMost, uinrPerInputImage, picksQuality }: RoutePrice, { dear, open, inputs = 0 }: MediaUsage): bigint {
  const mayBeDear = open === true || (inputs > 0 && uinrPerInputImage === undefined)
  return (dear === true || (mayBeDear && picksQuality === true)) && uinrPerImageMost !== undefined ? uinrPerImageMost : uinrPerImage
}

/** What is held for a prompt and an output of which nobody knows yet how the provider's cache comes in: the prompt at its dearest. */
export function priceHeld(price: RoutePrice, tokens: TokenUsage): bigint {
  const { inputUinrPerMtok: input, cacheWriteUinrPerMtok, cacheWriteLongUinrPerMtok, cachedInputUinrPerMtok: read } = price
  const isLong = (tokens.cacheWriteLongTokens ?? 0) > 0 && cacheWriteLongUinrPerMtok !== undefined
  const write = isLong ? cacheWriteLongUinrPerMtok : cacheWriteUinrPerMtok
  if (write !== null && write > input && write >= (read ?? 0n))
    return priceTokens(price, { ...tokens, cacheWriteTokens: tokens.promptTokens, ...(isLong ? { cacheWriteLongTokens: tokens.promptTokens } : {}) })
  return read !== null && read > input ? priceTokens(price, { ...tokens, cachedTokens: tokens.promptTokens }) : priceTokens(price, tokens)
}

const withAudio = (tokens: TokenUsage, audioTokens: number): TokenUsage => (audioTokens === 0 ? tokens : { ...tokens, audioTokens })

/** The usage that is held for on a route: sound and what may be kept in a cache for long are dearer than the rest of a prompt. */
export function heldUsage(tokens: TokenUsage, request: ParsedRequest, price: RoutePrice): TokenUsage {
  const heard = withAudio(tokens, audioTokensHeld(request, tokens.promptTokens))
  return price.cacheWriteLongUinrPerMtok === undefined || !asksLongCache(request) ? heard : { ...heard, cacheWriteLongTokens: tokens.promptTokens }
}

/** Tokens of output that an amount pays for behind a prompt, rounded down. */
export function outputTokensFor(amountUinr: bigint, price: RoutePrice, prompt: TokenUsage): number {
  if (price.outputUinrPerMtok === 0n) return Number.MAX_SAFE_INTEGER
  const left = amountUinr - priceHeld(price, prompt)
  return left <= 0n ? 0 : Number((left * 1_000_000n) / price.outputUinrPerMtok)
}

/** The charge never goes past what the caller allowed: completion tokens above `maxTokens` are the provider's business. */
export function cappedAt(tokens: TokenUsage, maxTokens: number | null): TokenUsage {
  return maxTokens === null || tokens.completionTokens <= maxTokens ? tokens : { ...tokens, completionTokens: maxTokens }
}

/** Most output tokens that a strict budget holds for: what the call says itself, else what its model can write, for each of its answers. */
export function outputCeiling({ maxTokens, answers }: Pick<ParsedRequest, 'maxTokens' | 'answers'>, model: Pick<Model, 'maxOutputTokens'>): number {
  return maxTokens ?? (model.maxOutputTokens ?? oneShotHoldMaxTokens) * answers
}

/** Output tokens held for before the dial. Of several answers each may be as long as a single one. */
export function firstHoldTokens(
  kind: Pick<Kind, 'hasOutput'>,
  request: Pick<ParsedRequest, 'maxTokens' | 'answers' | 'stream' | 'native'>,
  model: Pick<Model, 'maxOutputTokens' | 'reasoning'>,
  stream = request.stream,
): number {
  if (!kind.hasOutput) return 0
  const ceiling = outputCeiling(request, model)
  if (thinksUnseen(request, model)) return Math.min(ceiling, reasoningHoldTokens * request.answers)
  return Math.min(ceiling, stream ? firstStreamSliceTokens : oneShotHoldMaxTokens * request.answers)
}

const costOf = ({ route }: Attempt, request: ParsedRequest, promptTokens: number, completionTokens: number): bigint => {
  const { media } = request
  const tokens = heldUsage(plainUsage(promptTokens, completionTokens), request, route.price)
  return priceHeld(route.price, media === undefined ? tokens : { ...tokens, media })
}

/** The hold of a call in micro-rupees. */
export interface CallHold {
  /** At the dearest route of its plan. */
  readonly needUinr: bigint
  /** The worst case, which a strict budget holds instead. */
  readonly worstUinr: bigint
  /** A short answer behind the most that the prompt may be counted for: with less a strict budget does not bind a call, it refuses it. */
  readonly leastUinr: bigint
  /** The first hold behind the most that the prompt may be counted for, at the dearest route on the platform's account; null without one. */
  readonly debitUinr: bigint | null
}

/** What a call holds before its dial. */
export function holdOf(kind: Kind, request: ParsedRequest, plan: Plan): CallHold {
  let needUinr = 0n
  let worstUinr = 0n
  let leastUinr = 0n
  let debitUinr: bigint | null = null
  // Each attempt is counted with the tokens that its own model may use.
  for (const attempt of plan.attempts) {
    const needTokens = firstHoldTokens(kind, request, attempt.model)
    const worstTokens = kind.hasOutput ? outputCeiling(request, attempt.model) : 0
    const mostTokens = promptTokensMost(request, attempt)
    const need = costOf(attempt, request, request.promptTokens, needTokens)
    const worst = worstTokens === needTokens && mostTokens === request.promptTokens ? need : costOf(attempt, request, mostTokens, worstTokens)
    // What a model thinks unseen comes before its answer.
    const shortTokens = thinksUnseen(request, attempt.model) ? needTokens : Math.min(needTokens, firstStreamSliceTokens * request.answers)
    const least = request.maxTokens === null ? costOf(attempt, request, mostTokens, shortTokens) : need
    const debit = mostTokens === request.promptTokens ? need : costOf(attempt, request, mostTokens, needTokens)
    if (need > needUinr) needUinr = need
    if (least > leastUinr) leastUinr = least
    if (!attempt.byok && (debitUinr === null || debit > debitUinr)) debitUinr = debit
    if (worst > worstUinr) worstUinr = worst
  }
  return { needUinr, worstUinr, leastUinr, debitUinr }
}
