/** Decides when an alert fires, is repeated, and is over. Pure. */
import type { AlertMetric, AlertRow, StepFigures } from './alert-queries.ts'

/** Canaries that a step must have within the window before anything is said of it. */
export const alertChecksMin = 3

/** The value of a metric, at the step where it is worst. */
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
 * Returns the metric at the step where it is worst; null while no step has enough canaries. A chain is as good as its worst step: nine good steps must
 * not hide a dead one. Latency is that of answered canaries.
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

/** At the threshold or above; of a threshold of 0 anything above. */
const isCrossed = (threshold: number, value: number): boolean => value >= threshold && value > 0

/**
 * Notifies once when the metric crosses the threshold, again after the cool-down while it stays there, and once when it is over, if it was notified. A
 * second crossing within the cool-down is reported only after it.
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
