/** The fields that Brigade reads from the price list and from the exchange rate. All other fields are ignored. */
import { isObject, objectsOf } from '../../../platform/values/json.ts'
import { type Decimal, decimalOf, decimalText } from './price-decimal.ts'

/** A model of the router that prices are compared with. Its prices are decimal strings, in US dollars per token. */
export interface ListedPrice {
  readonly id: string
  readonly input: string
  readonly output: string
}

/** Maximum number of models from one list. */
const listMax = 5000
const idPattern = /^[\w.:/@+~-]{1,200}$/
/** Bounds of plausible values: a token price in US dollars, and rupees for one US dollar. Other values are mistakes of the source. */
const usdPerTokenMax: Decimal = { digits: 1n, scale: 1 }
const inrPerUsdMin = 1n
const inrPerUsdMax = 10_000n

/**
 * Returns the models with a price from `{data: [{id, pricing: {prompt, completion}}]}` or from the bare list. Free models are left out. Models
 * without a fixed price are marked by a negative price, and are left out too. Throws when the reply is not such a list or contains no price.
 */
export function pricesOf(reply: unknown): readonly ListedPrice[] {
  const list = isObject(reply) ? reply['data'] : reply
  const prices = objectsOf(list).slice(0, listMax).flatMap(priceOf)
  if (prices.length === 0)
    throw new Error('there is no model with a price in the reply: expected {"data":[{"id":…,"pricing":{"prompt":"…","completion":"…"}}]}')
  return prices
}

function priceOf({ id, pricing }: Record<string, unknown>): ListedPrice[] {
  if (typeof id !== 'string' || !idPattern.test(id) || id.endsWith(':free') || !isObject(pricing)) return []
  const input = decimalOf(pricing['prompt'])
  const output = decimalOf(pricing['completion'])
  if (input === null || output === null || (input.digits === 0n && output.digits === 0n)) return []
  return [input, output].every(price => !isMore(price, usdPerTokenMax)) ? [{ id, input: decimalText(input), output: decimalText(output) }] : []
}

/**
 * Returns rupees for one US dollar as a decimal text. It reads the shapes of public services: `rates.INR`, `conversion_rates.INR`, `data.INR` (a
 * number, or an object with `value`), `quotes.USDINR`, `usd.inr`. Throws when the rate is missing, is implausible, or is for a currency other than
 * the dollar.
 */
export function rateOf(reply: unknown): string {
  const { rates, conversion_rates, data, quotes, usd, base, base_code, source, base_currency } = isObject(reply) ? reply : {}
  for (const named of [base, base_code, source, base_currency])
    if (typeof named === 'string' && /^[a-z]{3}$/i.test(named) && named.toUpperCase() !== 'USD')
      throw new Error(`the rates are of one ${named}, not of one USD`)
  const field = (holder: unknown, name: string): unknown => (isObject(holder) ? holder[name] : undefined)
  const inData = field(data, 'INR')
  const found = [field(rates, 'INR'), field(conversion_rates, 'INR'), isObject(inData) ? inData['value'] : inData, field(quotes, 'USDINR'), field(usd, 'inr')]
  const rate = decimalOf(found.find(value => value !== undefined))
  if (rate === null) throw new Error('there is no rate of INR in the reply: expected {"rates":{"INR":…}}')
  if (isMore({ digits: inrPerUsdMin, scale: 0 }, rate) || isMore(rate, { digits: inrPerUsdMax, scale: 0 }))
    throw new Error('the rate cannot be one of INR for one USD')
  return decimalText(rate)
}

const isMore = (a: Decimal, b: Decimal): boolean => a.digits * 10n ** BigInt(b.scale) > b.digits * 10n ** BigInt(a.scale)
