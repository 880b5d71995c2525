import type { RoutePrice } from '../catalog/model.ts'

type Priced = Omit<RoutePrice, 'tiers'>

/**
 * Returns the prices of a route for batches: what the catalog says, or half of the price of a call, rounded up to a whole micro-rupee for a million units.
 */
export function batchPriceOf({ tiers, ...price }: RoutePrice): RoutePrice {
  return {
    ...halfOf(price),
    ...(tiers === undefined ? {} : { tiers: tiers.map(tier => ({ abovePromptTokens: tier.abovePromptTokens, price: halfOf(tier.price) })) }),
  }
}

function halfOf({ batchInputUinrPerMtok, batchOutputUinrPerMtok, ...price }: Priced): Priced {
  const { cachedInputUinrPerMtok: cached, cacheWriteUinrPerMtok: write, cacheWriteLongUinrPerMtok: long, audioInputUinrPerMtok: audio } = price
  return {
    ...price,
    inputUinrPerMtok: batchInputUinrPerMtok ?? half(price.inputUinrPerMtok),
    outputUinrPerMtok: batchOutputUinrPerMtok ?? half(price.outputUinrPerMtok),
    cachedInputUinrPerMtok: cached === null ? null : half(cached),
    cacheWriteUinrPerMtok: write === null ? null : half(write),
    ...(long === undefined ? {} : { cacheWriteLongUinrPerMtok: half(long) }),
    ...(audio === undefined ? {} : { audioInputUinrPerMtok: half(audio) }),
  }
}

const half = (amount: bigint): bigint => (amount + 1n) / 2n

/** Returns prices as JSON text for the database. The price of a batch is that of its admission. */
export const priceText = (price: RoutePrice): string => JSON.stringify(price, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))

/** Returns the prices that `priceText` wrote. */
export function priceFrom(stored: unknown): RoutePrice {
  return JSON.parse(JSON.stringify(stored), (_, value: unknown) =>
    typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as RoutePrice
}
