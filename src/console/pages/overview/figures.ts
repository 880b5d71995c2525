/** The figures of the overview. All of them come from one reply of /me/activity, so that they never disagree. */
import type { Operations } from '../../api/api.gen.ts'
import { type Series, withRest } from '../../ui/charts/series.ts'
import { addDays, daysBetween, daysInMonth, monthStart } from '../../ui/format/dates.ts'
import type { Metric } from './metric.ts'

export type Activity = Operations['activity']['reply']
type DayFigures = Activity['days'][number]

/** Days of the chart. */
export const chartDays = 30

/** Returns the span to ask for: the last 30 days, and the whole month when it has more. Both ends are Indian days. */
export function spanOf(today: string): { from: string; to: string } {
  const from = addDays(today, 1 - chartDays)
  const start = monthStart(today)
  return { from: start < from ? start : from, to: today }
}

interface Sums {
  readonly valueInr: number
  readonly costInr: number
  readonly calls: number
  readonly errors: number
  readonly tokens: number
}

function sumsOf(days: readonly DayFigures[]): Sums {
  return days.reduce(
    (sum, day) => ({
      valueInr: sum.valueInr + day.value_inr,
      costInr: sum.costInr + day.cost_inr,
      calls: sum.calls + day.requests,
      errors: sum.errors + day.errors,
      tokens: sum.tokens + day.tokens,
    }),
    { valueInr: 0, costInr: 0, calls: 0, errors: 0, tokens: 0 },
  )
}

export interface MonthFigures extends Sums {
  /** What the month comes to when every day is like those until now. The running day counts for its part. */
  readonly forecastInr: number
  /** Days of the month that have passed, with the part of the running day. */
  readonly days: number
}

/** Returns the sums of the month of `today`. `dayShare` is the part of the running day that has passed. */
export function monthOf({ days }: Activity, today: string, dayShare: number): MonthFigures {
  const start = monthStart(today)
  const sums = sumsOf(days.filter(({ day }) => day >= start && day <= today))
  const passed = daysBetween(start, today).length - 1 + dayShare
  return { ...sums, days: passed, forecastInr: passed < 1 ? sums.valueInr : (sums.valueInr / passed) * daysInMonth(today) }
}

const figureOf: Readonly<Record<Metric, (day: DayFigures) => number>> = {
  spend: day => day.value_inr,
  calls: day => day.requests,
  tokens: day => day.tokens,
}

/** Returns the days of the chart. */
export const chartSpan = (today: string): string[] => daysBetween(addDays(today, 1 - chartDays), today)

/** Returns one series for each of the largest models, and one for the rest. */
export function seriesOf({ days }: Activity, metric: Metric, span: readonly string[]): Series[] {
  const places = new Map(span.map((day, index) => [day, index]))
  const byModel = new Map<string, number[]>()
  for (const day of days) {
    const place = places.get(day.day)
    if (place === undefined) continue
    const values = byModel.get(day.model) ?? span.map(() => 0)
    values[place] = (values[place] ?? 0) + figureOf[metric](day)
    byModel.set(day.model, values)
  }
  return withRest([...byModel].map(([name, values]) => ({ name, values })))
}

/** Returns the course of a figure over the days of the chart. */
export function courseOf({ days }: Activity, span: readonly string[], figure: (day: DayFigures) => number): number[] {
  const byDay = new Map<string, number>()
  for (const day of days) byDay.set(day.day, (byDay.get(day.day) ?? 0) + figure(day))
  return span.map(day => byDay.get(day) ?? 0)
}

/** Returns the 95th percentile of the latency on each day of the chart. A day without served calls is 0. */
export function latencyCourse({ latency }: Activity, span: readonly string[]): number[] {
  const byDay = new Map((latency?.by ?? []).map(({ day, p95_ms: ms }) => [day, ms ?? 0]))
  return span.map(day => byDay.get(day) ?? 0)
}
