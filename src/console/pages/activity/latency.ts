import { lazy } from '../../ui/format/lazy.ts'
import { count } from '../../ui/format/numbers.ts'

const secondMs = 1_000
const minuteMs = 60_000
const seconds = lazy(() => new Intl.NumberFormat('en', { maximumFractionDigits: 1 }))

/** Writes a duration in little room: 840 ms, 1.6 s, 2 min 5 s. */
export function latencyText(ms: number): string {
  if (ms < secondMs) return `${count(ms)} ms`
  if (ms < minuteMs) return `${seconds().format(ms / secondMs)} s`
  const whole = Math.round(ms / secondMs)
  return whole % 60 === 0 ? `${Math.floor(whole / 60)} min` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
