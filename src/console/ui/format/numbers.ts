/** Numbers and money for people. Rupees have Indian grouping, and small amounts keep three digits that count. */

/** How numbers are grouped: 12,34,567 or 1,234,567. */
export type Grouping = 'indian' | 'international'

const locales: Readonly<Record<Grouping, string>> = { indian: 'en-IN', international: 'en-US' }
let locale = locales.indian
const made = new Map<string, Intl.NumberFormat>()

/** Sets the grouping of all numbers that are formatted from now on. */
export function setGrouping(grouping: Grouping): void {
  locale = locales[grouping]
}

function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = locale + JSON.stringify(options)
  const known = made.get(key)
  if (known !== undefined) return known
  const fresh = new Intl.NumberFormat(locale, options)
  made.set(key, fresh)
  return fresh
}

const rupee: Intl.NumberFormatOptions = { style: 'currency', currency: 'INR' }
/** Below this amount, two decimals would hide the value. */
const smallInr = 0.01
const compactFrom = 100_000

/** Writes an amount with two decimals, or with three significant digits below ₹0.01: ₹12,34,567.89 and ₹0.00176. */
export function money(inr: number): string {
  if (inr !== 0 && Math.abs(inr) < smallInr) return formatter({ ...rupee, maximumSignificantDigits: 3 }).format(inr)
  return formatter(rupee).format(inr)
}

/** Writes an amount in little room: ₹12.3L from a lakh, no decimals for whole rupees. */
export function shortMoney(inr: number): string {
  if (Math.abs(inr) >= compactFrom) return formatter({ ...rupee, notation: 'compact', maximumFractionDigits: 1 }).format(inr)
  if (Number.isInteger(inr)) return formatter({ ...rupee, maximumFractionDigits: 0 }).format(inr)
  return money(inr)
}

/** Writes an amount without decimals from one rupee on, for figures that are rough anyway. */
export const wholeMoney = (inr: number): string => (Math.abs(inr) < 1 || Math.abs(inr) >= compactFrom ? shortMoney(inr) : shortMoney(Math.round(inr)))

/** Writes an amount with all its digits, for tooltips. */
export const exactMoney = (inr: number): string => formatter({ ...rupee, maximumFractionDigits: 6 }).format(inr)

/** A currency beside rupees. `rate` is the price of one unit in rupees. */
export interface DisplayCurrency {
  readonly currency: string
  readonly rate: string
}

let shown: { readonly currency: string; readonly digits: bigint; readonly scale: bigint } | null = null

/** Sets the currency beside all amounts that are formatted from now on. Null: rupees only. */
export function setDisplayCurrency(to: DisplayCurrency | null): void {
  const [whole = '', decimals = ''] = to?.rate.split('.') ?? []
  shown = to === null ? null : { currency: to.currency, digits: BigInt(whole + decimals), scale: 10n ** BigInt(decimals.length) }
}

/** Writes an amount of rupees in the display currency, rounded half up once. Null without a display currency. */
export function displayMoney(inr: number): string | null {
  if (shown === null) return null
  const { currency, digits, scale } = shown
  const exact = BigInt(Math.round(Math.abs(inr) * 1e6)) * scale
  const amount = (Number((2n * exact + digits) / (2n * digits)) / 1e6) * Math.sign(inr)
  const inCode: Intl.NumberFormatOptions = { style: 'currency', currency, currencyDisplay: 'code' }
  if (amount !== 0 && Math.abs(amount) < smallInr) return formatter({ ...inCode, maximumSignificantDigits: 3 }).format(amount)
  return formatter({ ...inCode, minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(amount)
}

/** Returns a text of rupees with the amount in the display currency behind it: ₹88.25 · USD 1.00. */
export function withDisplay(text: string, inr: number): string {
  const beside = displayMoney(inr)
  return beside === null ? text : `${text} · ${beside}`
}

/** Writes a whole number with grouping. */
export const count = (value: number): string => formatter({ maximumFractionDigits: 0 }).format(value)

/** Writes a number in little room: 43K, 1.2M or 12L. */
export const shortCount = (value: number): string =>
  Math.abs(value) < 10_000 ? count(value) : formatter({ notation: 'compact', maximumFractionDigits: 1 }).format(value)

const kib = 1024

/** Writes a number of bytes in little room: 512 B, 1.5 KB or 3.2 MB. A KB has 1,024 bytes. */
export function bytesText(size: number): string {
  if (size < kib) return `${count(size)} B`
  const units = ['KB', 'MB', 'GB', 'TB'] as const
  const power = Math.min(units.length, Math.floor(Math.log(size) / Math.log(kib)))
  return `${formatter({ maximumFractionDigits: 1 }).format(size / kib ** power)} ${units[power - 1]}`
}

/** Writes a share of 1 as percent. Below one percent it keeps a digit, so that a small share does not read as none. */
export function percent(share: number): string {
  const isSmall = share > 0 && share < 0.01
  return formatter({ style: 'percent', maximumFractionDigits: isSmall ? 2 : share < 0.1 ? 1 : 0 }).format(share)
}

/** The result of reading an amount that a person typed. */
export type ReadAmount = { readonly ok: true; readonly inr: number } | { readonly ok: false; readonly why: string }

const amountShape = /^\d+(\.\d+)?$/
/** Three digits follow the last comma of an amount. Without this rule 0,25 would read as 25. */
const groupedShape = /^\d{1,3}(,\d{2,3})*,\d{3}(\.\d+)?$/
const decimalsMax = 6
const inrMax = 1_000_000_000

/** Reads an amount in rupees. It accepts ₹, spaces and grouping, and refuses a comma that could be a decimal point. An amount of 0 is refused, because it would look like a lifted limit. */
export function readAmount(text: string): ReadAmount {
  const typed = text.replace(/[₹\s]/g, '')
  const digits = typed.replaceAll(',', '')
  if (digits === '') return { ok: false, why: 'Type an amount, or choose No limit.' }
  if (typed.includes(',') && !groupedShape.test(typed)) return { ok: false, why: 'Write decimals with a point, such as 0.25. A comma groups digits: 1,250.' }
  if (!amountShape.test(digits)) return { ok: false, why: 'Type an amount in rupees, such as 500 or 0.25.' }
  if ((digits.split('.')[1]?.length ?? 0) > decimalsMax) return { ok: false, why: 'An amount has at most six decimals.' }
  const inr = Number(digits)
  if (inr === 0) return { ok: false, why: '0 is not a limit. Choose No limit, or disable it.' }
  if (inr > inrMax) return { ok: false, why: `The largest amount is ${money(inrMax)}.` }
  return { ok: true, inr }
}
