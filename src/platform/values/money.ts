/**
 * Money is an integer number of micro-rupees (`…Uinr`, bigint). One rupee is 1,000,000 micro-rupees. A price of ₹1 per million tokens is
 * exactly one micro-rupee a token, so prices are stored as micro-rupees per million tokens and divided once, at the end.
 */

const tokensPerMtok = 1_000_000n
const mtok = Number(tokensPerMtok)
const halfMtok = mtok / 2
/**
 * Largest sum that is calculated with JavaScript numbers. Prices and units are never negative, so when the sum is a safe integer, all its parts are safe
 * integers too.
 */
const exactMax = Number.MAX_SAFE_INTEGER - halfMtok

/** Converts rupees (a number from JSON, rounded to 6 decimals) to micro-rupees. Throws RangeError for a value that is not finite. */
export function uinrFromInr(inr: number): bigint {
  if (!Number.isFinite(inr)) throw new RangeError('not an amount of money')
  return BigInt(Math.round(inr * 1e6))
}

/** Converts micro-rupees to rupees as a JSON number. Exact up to ₹9 billion. */
export function inrFromUinr(uinr: bigint): number {
  return Number(uinr) / 1e6
}

/** Converts micro-rupees to rupees as text with at most six decimals. Exact for every amount and never in exponent form. */
export function inrTextOf(uinr: bigint): string {
  const sign = uinr < 0n ? '-' : ''
  const digits = String(uinr < 0n ? -uinr : uinr).padStart(7, '0')
  const decimals = digits.slice(-6).replace(/0+$/, '')
  return `${sign}${digits.slice(0, -6)}${decimals === '' ? '' : `.${decimals}`}`
}

/** One part of a bill: a number of units at a price per million of them. */
export interface PricedUnits {
  readonly units: number
  readonly uinrPerMtok: bigint
}

/** Returns Σ units × price, rounded half up once for the whole request. Negative units count as zero. */
export function priceUnits(parts: readonly PricedUnits[]): bigint {
  let exact = 0
  for (const part of parts) exact += Math.max(0, Math.trunc(part.units)) * Number(part.uinrPerMtok)
  // Numbers are exact while they are safe integers, and much faster than bigints. Every call is priced several times.
  if (exact >= 0 && exact <= exactMax) return BigInt((exact + halfMtok - ((exact + halfMtok) % mtok)) / mtok)
  let sum = 0n
  for (const part of parts) sum += BigInt(Math.max(0, Math.trunc(part.units))) * part.uinrPerMtok
  return (sum + tokensPerMtok / 2n) / tokensPerMtok
}
