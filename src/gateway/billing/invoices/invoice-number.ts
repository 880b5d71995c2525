/** Numbers of invoices: `BR/26-27/000001`, with one series per prefix and financial year. Decision 0306 says why. */
import { istDay } from '../../../platform/values/ist-time.ts'

/** Maximum number of characters by Rule 46(b) of the CGST Rules, which also allows all characters used here. */
export const numberLengthMax = 16

const digits = 6

/** Returns the Indian financial year of an instant, such as `26-27`. The year begins on 1 April at midnight IST. */
export function financialYear(ms: number): string {
  const [year = 0, month = 0] = istDay(ms).split('-').map(Number)
  const first = month >= 4 ? year : year - 1
  return `${twoDigits(first)}-${twoDigits(first + 1)}`
}

/** Returns the series of an invoice that is issued at this instant, such as `BR/26-27`. */
export function seriesOf(prefix: string, ms: number): string {
  return `${prefix}/${financialYear(ms)}`
}

/**
 * Returns the full invoice number. The sequence has six digits. It has more when the series exceeds six digits and the limit of 16 characters leaves
 * room. Throws RangeError when there is no room, because numbers must not repeat and an invoice must not have a longer number.
 */
export function invoiceNumber(series: string, seq: number): string {
  const number = `${series}/${String(seq).padStart(digits, '0')}`
  if (number.length > numberLengthMax) throw new RangeError(`the invoice series ${series} is full; set a shorter or another INVOICE_PREFIX`)
  return number
}

function twoDigits(year: number): string {
  return String(year % 100).padStart(2, '0')
}
