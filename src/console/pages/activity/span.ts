/** The span of days that a page of activity shows. Both ends are Indian days and are included. */
import { addDays, daysBetween, dayText, monthStart } from '../../ui/format/dates.ts'

/** Spans that move with the day. The address keeps the name, so that a link shows the same kind of span tomorrow. */
export const rangeNames = ['today', '7d', '30d', 'month', 'last-month', '90d'] as const
export type RangeName = (typeof rangeNames)[number]

export interface Span {
  readonly from: string
  readonly to: string
}

/** What the address says about the span: the name of a range, or two days. */
export interface SpanSearch {
  readonly range?: RangeName
  readonly from?: string
  readonly to?: string
}

/** The range of a page whose address names none. */
export const defaultRange: RangeName = '30d'
/** The longest span of a report. */
export const spanDaysMax = 366

const dayShape = /^\d{4}-\d{2}-\d{2}$/

/** Returns whether the text is a day of the calendar. */
export function isDay(text: unknown): text is string {
  return typeof text === 'string' && dayShape.test(text) && !Number.isNaN(Date.parse(`${text}T00:00:00Z`)) && addDays(text, 0) === text
}

/** Returns the number of days of a span. */
export const lengthOf = ({ from, to }: Span): number => Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000) + 1

/** Reads the span from the address. A span that no report allows is left out. */
export function readSpan(search: Record<string, unknown>): SpanSearch {
  const { from, to } = search
  if (isDay(from) && isDay(to) && from <= to && lengthOf({ from, to }) <= spanDaysMax) return { from, to }
  const range = rangeNames.find(name => name === search['range'])
  return range === undefined || range === defaultRange ? {} : { range }
}

/** Returns the days of a range. */
export function daysOfRange(range: RangeName, today: string): Span {
  const start = monthStart(today)
  if (range === 'today') return { from: today, to: today }
  if (range === 'month') return { from: start, to: today }
  if (range === 'last-month') return { from: monthStart(addDays(start, -1)), to: addDays(start, -1) }
  return { from: addDays(today, 1 - Number.parseInt(range, 10)), to: today }
}

/** Returns the days that the address asks for. */
export function spanOf({ range = defaultRange, from, to }: SpanSearch, today: string): Span {
  return from !== undefined && to !== undefined ? { from, to } : daysOfRange(range, today)
}

/** Returns the span of the same length that ends the day before. */
export function spanBefore(span: Span): Span {
  const to = addDays(span.from, -1)
  return { from: addDays(to, 1 - lengthOf(span)), to }
}

/** Writes a span: 1 Nov – 28 Nov. */
export const spanText = ({ from, to }: Span): string => (from === to ? dayText(from) : `${dayText(from)} – ${dayText(to)}`)

/** Returns the days of a span, or its hours as 2026-11-28T05. */
export function pointsOf({ from, to }: Span, unit: 'day' | 'hour'): string[] {
  const days = daysBetween(from, to)
  if (unit === 'day') return days
  return days.flatMap(day => Array.from({ length: 24 }, (_, hour) => pointOfHour(day, hour)))
}

/** Returns the point of an hour of a day. */
export const pointOfHour = (day: string, hour: number): string => `${day}T${String(hour).padStart(2, '0')}`
