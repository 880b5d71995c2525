/** The tax inside what was paid. Amounts are paise. Decision 0304 says why. */

/** Percent of GST on our service (SAC 9983). */
export const gstPercent = 18n

export interface TaxParts {
  readonly totalPaise: bigint
  /** What the tax is on. */
  readonly taxablePaise: bigint
  readonly cgstPaise: bigint
  /** State tax; in a union territory without a legislature the tax of that territory. */
  readonly sgstPaise: bigint
  readonly igstPaise: bigint
}

/** 'none': the seller is not registered and may not charge tax · 'intra': buyer and seller are in one state · 'inter': they are not. */
export type TaxKind = 'none' | 'intra' | 'inter'

/** How a supply is taxed, by the state codes (the first two digits of a GSTIN) of seller and buyer. */
export function taxKindOf(sellerState: string | null, buyerState: string): TaxKind {
  if (sellerState === null) return 'none'
  return sellerState === buyerState ? 'intra' : 'inter'
}

/**
 * Splits what was paid, tax included. Each tax is total × rate ÷ (100 + rate) to the nearest paisa, a half up; CGST and SGST are always
 * equal. What rounding leaves over or takes, one paisa at most, is in the taxable value, so the parts are the total exactly.
 */
export function splitTax(totalPaise: bigint, kind: TaxKind): TaxParts {
  const cgstPaise = kind === 'intra' ? inclusive(totalPaise, gstPercent / 2n) : 0n
  const igstPaise = kind === 'inter' ? inclusive(totalPaise, gstPercent) : 0n
  return { totalPaise, taxablePaise: totalPaise - 2n * cgstPaise - igstPaise, cgstPaise, sgstPaise: cgstPaise, igstPaise }
}

function inclusive(totalPaise: bigint, percent: bigint): bigint {
  const whole = 100n + gstPercent
  return (2n * totalPaise * percent + whole) / (2n * whole)
}

const uinrPerPaisa = 10_000n

/** Micro-rupees as paise. Throws RangeError for what is not above zero or no whole number of paise: no such payment exists. */
export function paiseOf(amountUinr: bigint): bigint {
  if (amountUinr <= 0n || amountUinr % uinrPerPaisa !== 0n) throw new RangeError('an invoice is for a whole number of paise above zero')
  return amountUinr / uinrPerPaisa
}

/** Paise as rupees, a JSON number. */
export function inrOfPaise(paise: bigint): number {
  return Number(paise) / 100
}
