/** Formats rupees and days as Indian documents write them. Amounts are in paise. */
import { istDay, istMinute } from '../../../../platform/values/ist-time.ts'

/** Returns an amount such as `₹1,00,000.00`: two decimals, grouped by lakh and crore. */
export function rupeesOf(paise: bigint): string {
  return `₹${groupedRupees(paise)}`
}

/** Returns the same text without the rupee sign, for columns whose heading names the currency. */
export function groupedRupees(paise: bigint): string {
  const rupees = String(paise / 100n).replace(/(\d)(?=(\d\d)+\d$)/g, '$1,')
  return `${rupees}.${String(paise % 100n).padStart(2, '0')}`
}

const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']

/** Returns the IST day, such as `22 November 2026`. */
export function longDay(ms: number): string {
  const [year = '', month = '', day = ''] = istDay(ms).split('-')
  return `${Number(day)} ${months[Number(month) - 1] ?? ''} ${year}`
}

/** Returns the IST minute, such as `22 November 2026, 14:05 IST`. */
export function longMinute(ms: number): string {
  return `${longDay(ms)}, ${istMinute(ms).slice(11)} IST`
}
