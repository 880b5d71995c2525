/** Amounts in another currency, for people who read reports. Books, budgets and invoices stay in rupees. Decision 0816 gives the reasons. */
import { inrTextOf } from './values/money.ts'

/** The most currencies in the table of rates. ISO 4217 has fewer. */
const ratesMax = 200
/** A rate has at most 9 digits before the point and 8 after it, so every conversion is a short calculation. */
const rateShape = /^([A-Z]{3})=(\d{1,9})(?:\.(\d{1,8}))?@(\d{4}-\d{2}-\d{2})$/

/** What one unit of a currency costs in rupees on a day. */
export interface DisplayRate {
  /** The code of ISO 4217. */
  readonly currency: string
  /** Rupees for one unit, as the operator wrote it. */
  readonly rate: string
  /** The day of the rate, YYYY-MM-DD. */
  readonly asOf: string
  /** The rate is `digits` divided by `scale`, exactly. */
  readonly digits: bigint
  readonly scale: bigint
}

/** The rates of an installation by currency. */
export type DisplayRates = ReadonlyMap<string, DisplayRate>

/**
 * Reads the table of rates. An entry is `USD=88.25@2026-11-28`: one US dollar costs ₹88.25 on that day. Throws RangeError with a sentence about the first
 * entry that is wrong.
 */
export function displayRatesOf(entries: readonly string[]): DisplayRates {
  if (entries.length > ratesMax) throw new RangeError(`has ${entries.length} rates. It may have at most ${ratesMax}.`)
  const rates = new Map<string, DisplayRate>()
  const known = new Set(Intl.supportedValuesOf('currency'))
  for (const entry of entries) {
    const [, currency = '', whole = '', decimals = '', asOf = ''] = rateShape.exec(entry) ?? []
    const named = `has the entry "${entry.slice(0, 40)}"`
    if (currency === '') throw new RangeError(`${named}. Write a currency, its price in rupees and the day of the price, such as USD=88.25@2026-11-28.`)
    if (!known.has(currency) || currency === 'INR') throw new RangeError(`${named}. ${currency} is not a currency of ISO 4217 other than INR.`)
    if (rates.has(currency)) throw new RangeError(`${named}, and ${currency} has a rate already. Write one rate for each currency.`)
    if (!isDay(asOf)) throw new RangeError(`${named}. ${asOf} is not a day of the calendar.`)
    const digits = BigInt(whole + decimals)
    if (digits === 0n) throw new RangeError(`${named}. A rate is above 0.`)
    rates.set(currency, { currency, rate: decimals === '' ? whole : `${whole}.${decimals}`, asOf, digits, scale: 10n ** BigInt(decimals.length) })
  }
  return rates
}

/** Returns an amount in the currency of the rate, as text with at most six decimals. It is rounded half up, once. */
export function displayAmountOf(uinr: bigint, { digits, scale }: Pick<DisplayRate, 'digits' | 'scale'>): string {
  const isBelowZero = uinr < 0n
  const exact = (isBelowZero ? -uinr : uinr) * scale
  const rounded = (2n * exact + digits) / (2n * digits)
  return inrTextOf(isBelowZero ? -rounded : rounded)
}

const isDay = (text: string): boolean => {
  const at = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text)
}
