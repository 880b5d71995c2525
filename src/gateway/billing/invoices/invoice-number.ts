/** Numbers of invoices: `BR/26-27/000001`, with one series per prefix and financial year. Decision 0306 says why. */
import { istDay } from '../../../platform/values/ist-time.ts'

/** Maximum number of characters by Rule 46(b) of the CGST Rules, which also allows all characters used here. */
export const numberLengthMax = 16

const digits = 6

/** The Indian financial year of an instant, `26-27`: it begins on 1 April at midnight IST. */
export function financialYear(ms: number): string {
  const [year = 0, month = 0] = istDay(ms).split('-').map(Number)
  const first = month >= 4 ? year : year - 1
  return `${twoDigits(first)}-${twoDigits(first + 1)}`
}

/** Returns the series of an invoice of that instant, such as `BR/26-27`. */
export function seriesOf(prefix: string, ms: number): string {
  return `${prefix}/${financialYear(ms)}`
}

/**
 * Returns the number in full. It has six digits, and more when a series exceeds them and the limit of 16 characters leaves room. Throws RangeError when
 * there is no room: numbers must not repeat, and a longer number is not allowed on an invoice.
 */
export function invoiceNumber(series: string, seq: number): string {
  const number = `${series}/${String(seq).padStart(digits, '0')}`
  if (number.length > numberLengthMax) throw new RangeError(`the invoice series ${series} is full; set a shorter or another INVOICE_PREFIX`)
  return number
}

function twoDigits(year: number): string {
  return String(year % 100).padStart(2, '0')
}
