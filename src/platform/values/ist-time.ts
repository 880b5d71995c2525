/** Indian Standard Time, UTC + 5 h 30 min without summer time. Budgets use IST months, daily limits IST days. */
const istOffsetMs = 5.5 * 3600 * 1000
const dayMs = 24 * 3600 * 1000
const minuteMs = 60 * 1000

const pad = (n: number): string => String(n).padStart(2, '0')

const shifted = (ms: number): Date => new Date(ms + istOffsetMs)

/** Returns the IST day of an instant, `2026-11-21`. */
export function istDay(ms: number): string {
  const d = shifted(ms)
  return `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())}`
}

/** Returns the IST month of an instant, `2026-11`. */
export function istMonth(ms: number): string {
  return istDay(ms).slice(0, 7)
}

/** Returns the IST minute of an instant, `2026-11-21T09:15`. */
export function istMinute(ms: number): string {
  const d = shifted(ms)
  return `${istDay(ms)}T${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`
}

/** Returns the hour of an instant in its IST day, from 0 to 23. */
export function istHour(ms: number): number {
  return shifted(ms).getUTCHours()
}

/** Returns the instant at which the IST minute of `ms` ends. */
export function endOfIstMinuteMs(ms: number): number {
  return (Math.floor(ms / minuteMs) + 1) * minuteMs
}

/** Returns the instant at which the IST day of `ms` ends (18:30 UTC). */
export function endOfIstDayMs(ms: number): number {
  return (Math.floor((ms + istOffsetMs) / dayMs) + 1) * dayMs - istOffsetMs
}

/** Returns the instant at which the IST month of `ms` ends. */
export function endOfIstMonthMs(ms: number): number {
  const d = shifted(ms)
  return Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 1) - istOffsetMs
}

/** Returns the instant at which the IST day `2026-11-21` begins. Null when the text is not a calendar day. */
export function startOfIstDayMs(day: string): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day)
  if (!match) return null
  const [year, month, date] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const utc = Date.UTC(year, month - 1, date)
  const back = new Date(utc)
  if (back.getUTCFullYear() !== year || back.getUTCMonth() !== month - 1 || back.getUTCDate() !== date) return null
  return utc - istOffsetMs
}
