import { exactTime, relativeTime } from './dates.ts'
import { count, money } from './numbers.ts'

/** Makes the formatters that nearly every page uses. The browser does it while the page waits for the gateway, instead of while it draws the first rows. */
export function warmFormats(): void {
  money(1)
  count(1)
  const now = new Date().toISOString()
  exactTime(now)
  relativeTime(now, Date.now() + 60_000)
}
