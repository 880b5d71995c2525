/** Dates and times for people. Days and months of usage and budgets are those of India, wherever the person is. */
import { lazy } from './lazy.ts'

const dayMs = 86_400_000
const istOffsetMs = 5.5 * 3_600_000

/** Returns the Indian day of a moment, as YYYY-MM-DD. */
export const istDay = (ms: number): string => new Date(ms + istOffsetMs).toISOString().slice(0, 10)

/** Returns the moment at which an Indian day begins, in ISO 8601. */
export const istDayStart = (day: string): string => new Date(Date.parse(`${day}T00:00:00Z`) - istOffsetMs).toISOString()

/** Returns the day that is `days` after a day. Negative: before it. */
export const addDays = (day: string, days: number): string => new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10)

/** Returns the first day of the month of a day. */
export const monthStart = (day: string): string => `${day.slice(0, 7)}-01`

/** Returns the number of days of the month of a day. */
export function daysInMonth(day: string): number {
  const [year = 1970, month = 1] = day.split('-').map(Number)
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** Returns all days from `from` to `to`, both included. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  for (let day = from; day <= to; day = addDays(day, 1)) days.push(day)
  return days
}

const shortDay = lazy(() => new Intl.DateTimeFormat('en-IN', { day: 'numeric', month: 'short', timeZone: 'UTC' }))
const longDay = lazy(() => new Intl.DateTimeFormat('en-IN', { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' }))

/** Writes a day such as 2026-11-28 as 28 Nov. */
export const dayText = (day: string): string => shortDay().format(new Date(`${day}T00:00:00Z`))

/** Writes a day with its weekday and year. */
export const longDayText = (day: string): string => longDay().format(new Date(`${day}T00:00:00Z`))

const date = lazy(() => new Intl.DateTimeFormat('en-IN', { day: 'numeric', month: 'short', year: 'numeric' }))
const exact = lazy(() => new Intl.DateTimeFormat('en-IN', { dateStyle: 'medium', timeStyle: 'long' }))

const timeOfDay = new Intl.DateTimeFormat('en-IN', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone: 'Asia/Kolkata' })

/** Writes the time of day of a moment in India. */
export const istTime = (at: string): string => timeOfDay.format(new Date(at))

/** Writes the date of a moment in the zone of the person. */
export const dateText = (at: string): string => date().format(new Date(at))

/** Writes a moment with its time and the name of the zone. */
export const exactTime = (at: string): string => exact().format(new Date(at))

const relative = lazy(() => new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' }))
const steps: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, ms: number])[] = [
  ['year', 365 * dayMs],
  ['month', 30 * dayMs],
  ['day', dayMs],
  ['hour', 3_600_000],
  ['minute', 60_000],
]
const justNowMs = 45_000

/** Writes a moment as the distance from now: "3 hours ago", "in 12 days", "just now". */
export function relativeTime(at: string, nowMs: number): string {
  const distance = Date.parse(at) - nowMs
  if (Math.abs(distance) < justNowMs) return 'just now'
  const [unit, size] = steps.find(([, ms]) => Math.abs(distance) >= ms) ?? ['minute', 60_000]
  return relative().format(Math.trunc(distance / size) || Math.sign(distance), unit)
}
