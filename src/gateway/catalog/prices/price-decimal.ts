/** Exact decimals for prices and rates. Prices from other sources are converted to money in one step, without intermediate rounding. */

/** The value `digits` / 10^`scale`. It is not negative. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

/** A number, plain or with an exponent. Prices and rates never have more digits than this allows. */
const pattern = /^(\d{1,20})(?:\.(\d{1,30}))?(?:e([+-]?\d{1,2}))?$/i

/** Reads a decimal from a text or a JSON number. A number is read in its shortest decimal form. Returns null when the value is invalid or negative. */
export function decimalOf(value: unknown): Decimal | null {
  const match = typeof value === 'string' || typeof value === 'number' ? pattern.exec(String(value).trim()) : null
  if (match === null) return null
  const [, whole = '', fraction = '', exponent = '0'] = match
  const digits = BigInt(whole + fraction)
  const scale = fraction.length - Number(exponent)
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

/** Returns the plain text of a decimal, never with an exponent. */
export function decimalText({ digits, scale }: Decimal): string {
  const text = String(digits).padStart(scale + 1, '0')
  return scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`
}

const tokensPerMtok = 1_000_000n
const uinrPerInr = 1_000_000n

/** Converts a price in US dollars per token to micro-rupees per million tokens. It rounds half up, and only once. */
export function uinrPerMtokOf(usdPerToken: Decimal, inrPerUsd: Decimal): bigint {
  const divisor = 10n ** BigInt(usdPerToken.scale + inrPerUsd.scale)
  return roundedDivision(usdPerToken.digits * inrPerUsd.digits * tokensPerMtok * uinrPerInr, divisor)
}

/** Divides and rounds half away from zero. The divisor is positive. */
export function roundedDivision(dividend: bigint, divisor: bigint): bigint {
  const half = divisor / 2n
  return (dividend < 0n ? dividend - half : dividend + half) / divisor
}
