/** Decides when an alert fires, is repeated, and ends. The functions are pure. */
import type { AlertMetric, AlertRow, StepFigures } from './alert-queries.ts'

/** Minimum number of canaries of a step within the window. A step with fewer canaries is not evaluated. */
export const alertChecksMin = 3

/** The value of a metric at the step where it is worst. */
export interface Reading {
  readonly value: number
  readonly model: string
  readonly pinned: string
  /** The number of canaries of that step within the window. */
  readonly checks: number
}

export interface Verdict {
  /** The notification to send. Null when there is nothing to send. */
  readonly notify: 'firing' | 'recovered' | null
  readonly firingSince: Date | null
  readonly notifiedAt: Date | null
  readonly reading: Reading | null
}

/**
 * Returns the metric at the step where it is worst. Returns null while no step has enough canaries. The worst step decides, because nine good steps
 * must not hide a dead one. Latency counts only answered canaries.
 */
export function worstOf(metric: AlertMetric, figures: readonly StepFigures[]): Reading | null {
  let worst: Reading | null = null
  for (const { model, pinned, checks, failures, p95Ms } of figures) {
    if (checks < alertChecksMin) continue
    const value = metric === 'error_rate' ? failures / checks : checks - failures < alertChecksMin ? null : p95Ms
    if (value !== null && (worst === null || value > worst.value)) worst = { value, model, pinned, checks }
  }
  return worst
}

/** Returns true when the value is at or above the threshold. With a threshold of 0, a value of 0 does not count. */
const isCrossed = (threshold: number, value: number): boolean => value >= threshold && value > 0

/**
 * Decides about a notification. An alert notifies once when the metric crosses the threshold. While the metric stays at or above the threshold, the
 * alert notifies again after each cool-down. When the metric falls below the threshold, the alert notifies once, but only if the crossing was
 * notified. A second crossing within the cool-down is notified only after the cool-down.
 */
export function judge(
  alert: Pick<AlertRow, 'metric' | 'threshold' | 'firingSince' | 'notifiedAt'>,
  figures: readonly StepFigures[],
  now: Date,
  cooldownMs: number,
): Verdict {
  const { metric, threshold, firingSince, notifiedAt } = alert
  const reading = worstOf(metric, figures)
  if (reading === null) return { notify: null, firingSince, notifiedAt, reading }
  if (isCrossed(threshold, reading.value)) {
    const isDue = notifiedAt === null || now.getTime() - notifiedAt.getTime() >= cooldownMs || notifiedAt > now
    return { notify: isDue ? 'firing' : null, firingSince: firingSince ?? now, notifiedAt: isDue ? now : notifiedAt, reading }
  }
  const wasNotified = firingSince !== null && notifiedAt !== null && notifiedAt >= firingSince
  return { notify: wasNotified ? 'recovered' : null, firingSince: null, notifiedAt, reading }
}
