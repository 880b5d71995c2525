/** Decides when an alert fires, is repeated, and ends. The functions are pure. */
import type { AlertMetric, AlertRow, StepFigures } from './alert-queries.ts'

/** Minimum number of canaries of a step within the window. A step with fewer is not judged. */
export const alertChecksMin = 3

/** The value of a metric at the step where it is worst. */
export interface Reading {
  readonly value: number
  readonly model: string
  readonly pinned: string
  /** Canaries of that step within the window. */
  readonly checks: number
}

export interface Verdict {
  /** The notification to send; null: none. */
  readonly notify: 'firing' | 'recovered' | null
  readonly firingSince: Date | null
  readonly notifiedAt: Date | null
  readonly reading: Reading | null
}

/**
 * Returns the metric at the step where it is worst, or null while no step has enough canaries. A chain is as good as its worst step: nine good steps
 * must not hide a dead one. Latency counts answered canaries only.
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

/** Returns true at the threshold or above it. For a threshold of 0, only values above it count. */
const isCrossed = (threshold: number, value: number): boolean => value >= threshold && value > 0

/**
 * Decides about a notification. An alert notifies once when the metric crosses the threshold, and again after the cool-down while it stays there. It
 * notifies once more when it is over, if the crossing was notified. A second crossing within the cool-down is reported only after it.
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
