/** The tax contained in a paid amount. Amounts are paise. Decision 0304 says why. */

/** Percentage of GST on the service (SAC 9983). */
export const gstPercent = 18n

export interface TaxParts {
  readonly totalPaise: bigint
  /** The amount to which the tax applies. */
  readonly taxablePaise: bigint
  readonly cgstPaise: bigint
  /** State tax (SGST). In a union territory without a legislature, it is UTGST. */
  readonly sgstPaise: bigint
  readonly igstPaise: bigint
}

/** 'none': the seller is not registered and may not charge tax. 'intra': buyer and seller are in one state. 'inter': they are in different states. */
export type TaxKind = 'none' | 'intra' | 'inter'

/** Returns how a supply is taxed, from the state codes (the first two digits of a GSTIN) of seller and buyer. */
export function taxKindOf(sellerState: string | null, buyerState: string): TaxKind {
  if (sellerState === null) return 'none'
  return sellerState === buyerState ? 'intra' : 'inter'
}

/**
 * Splits a paid amount that includes tax. Each tax is total × rate ÷ (100 + rate), rounded half up to a paisa; CGST and SGST are always equal. The
 * taxable value takes up the rounding difference of at most one paisa, so the parts add up to the total exactly.
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

/** Converts micro-rupees to paise. Throws RangeError for an amount that is zero, negative, or not a whole number of paise. No payment has such an amount. */
export function paiseOf(amountUinr: bigint): bigint {
  if (amountUinr <= 0n || amountUinr % uinrPerPaisa !== 0n) throw new RangeError('an invoice is for a whole number of paise above zero')
  return amountUinr / uinrPerPaisa
}

/** Converts paise to rupees as a JSON number. */
export function inrOfPaise(paise: bigint): number {
  return Number(paise) / 100
}
