/** What tokens and pictures cost on a route: the one place where a charge is computed from usage. The meter and every hold ask it. */
import { type PricedUnits, priceUnits } from '../../../platform/values/money.ts'
import type { RoutePrice } from '../../catalog/model.ts'
import { bytesPerToken, type MediaUsage, type TokenUsage } from '../../wire/usage.ts'

/** Returns the price of usage on a route in micro-rupees, rounded half up once. Cached prompt tokens are part of the prompt and are never counted twice. */
export function priceTokens(price: RoutePrice, tokens: TokenUsage): bigint {
  return priceAt(tierOf(price, tokens.promptTokens), tokens)
}

/**
 * Returns the price of the usage of a call that was left or cut. A prompt that the provider has not reported has the tier for which the call holds.
 * Decision 0641 gives the reasons.
 */
export function priceLeft(price: RoutePrice, tokens: TokenUsage): bigint {
  return tokens.isPromptGuessed === true ? priceAt(heldTierOf(price, tokens.promptTokens), tokens) : priceTokens(price, tokens)
}

/** Returns the prices of a call with a prompt of this length. */
function tierOf(price: RoutePrice, promptTokens: number): RoutePrice {
  return price.tiers?.findLast(({ abovePromptTokens }) => promptTokens > abovePromptTokens)?.price ?? price
}

/**
 * Returns the prices of the highest tier that a prompt of this estimate can reach. A prompt has at most one token for each byte. Decision 0508 gives
 * the reasons.
 */
const heldTierOf = (price: RoutePrice, promptTokens: number): RoutePrice => (price.tiers === undefined ? price : tierOf(price, promptTokens * bytesPerToken))

const priceAt = (price: RoutePrice, tokens: TokenUsage): bigint => priceUnits(partsAt(price, tokens))

/**
 * Returns the parts of the price of usage before they are rounded. The replies of a batch are added up before their sum is rounded once.
 */
export const partsOf = (price: RoutePrice, tokens: TokenUsage): readonly PricedUnits[] => partsAt(tierOf(price, tokens.promptTokens), tokens)

function partsAt(price: RoutePrice, tokens: TokenUsage): readonly PricedUnits[] {
  // Sound has one price, whether it is read from a cache or not.
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
    if (media.searches !== undefined) parts.push({ units: media.searches, uinrPerMtok: price.uinrPerMillionSearches ?? 0n })
    parts.push({ units: media.audioSeconds + media.characters, uinrPerMtok: price.inputUinrPerMtok })
  }
  return parts
}

const hasWritePrice = ({ cacheWriteUinrPerMtok, cacheWriteLongUinrPerMtok }: RoutePrice): boolean =>
  cacheWriteUinrPerMtok !== null || cacheWriteLongUinrPerMtok !== undefined

/**
 * Returns the price of one picture. A picture has the route's dearest price, where there is one, in three cases. First, the request asks for a
 * dear picture. Second, the provider chooses the quality and may choose a dear one. Third, the provider chooses the quality and the picture is
 * made from given pictures without a price of their own. Only delivered pictures are metered, so their price includes the reading of the given
 * ones.
 */
function pricePerImage({ uinrPerImage, uinrPerImageMost, uinrPerInputImage, picksQuality }: RoutePrice, { dear, open, inputs = 0 }: MediaUsage): bigint {
  const mayBeDear = open === true || (inputs > 0 && uinrPerInputImage === undefined)
  return (dear === true || (mayBeDear && picksQuality === true)) && uinrPerImageMost !== undefined ? uinrPerImageMost : uinrPerImage
}

/** Returns the amount to hold before the cache counts are known. The prompt counts at its dearest price. */
export function priceHeld(route: RoutePrice, tokens: TokenUsage): bigint {
  const price = heldTierOf(route, tokens.promptTokens)
  const { inputUinrPerMtok: input, cacheWriteUinrPerMtok, cacheWriteLongUinrPerMtok, cachedInputUinrPerMtok: read } = price
  const isLong = (tokens.cacheWriteLongTokens ?? 0) > 0 && cacheWriteLongUinrPerMtok !== undefined
  const write = isLong ? cacheWriteLongUinrPerMtok : cacheWriteUinrPerMtok
  if (write !== null && write > input && write >= (read ?? 0n))
    return priceAt(price, { ...tokens, cacheWriteTokens: tokens.promptTokens, ...(isLong ? { cacheWriteLongTokens: tokens.promptTokens } : {}) })
  return read !== null && read > input ? priceAt(price, { ...tokens, cachedTokens: tokens.promptTokens }) : priceAt(price, tokens)
}

/** Returns the output tokens that an amount pays for after the prompt, rounded down. */
export function outputTokensFor(amountUinr: bigint, price: RoutePrice, prompt: TokenUsage): number {
  const { outputUinrPerMtok } = heldTierOf(price, prompt.promptTokens)
  if (outputUinrPerMtok === 0n) return Number.MAX_SAFE_INTEGER
  const left = amountUinr - priceHeld(price, prompt)
  return left <= 0n ? 0 : Number((left * 1_000_000n) / outputUinrPerMtok)
}
