/** The rule that decides whether the last hour of an organisation is an anomaly. It uses no clock and no database. */

export const anomalyMetrics = ['spend', 'errors', 'tokens'] as const
export type AnomalyMetric = (typeof anomalyMetrics)[number]

/** Sums of a span: value in micro-rupees (calls on own provider keys included), failed calls, and prompt plus completion tokens. */
export type UsageSums = Readonly<Record<AnomalyMetric, bigint>>

/** Maximum number of hours before the observed one that form the baseline. */
export const baselineHoursMax = 7 * 24
/**
 * An organisation with fewer hours of history than this is new. It has no usual hour yet, so its first calls are no anomaly. Our choice.
 */
export const baselineHoursMin = 24
/** An hour is an anomaly from this multiple of the baseline's mean on. */
export const anomalyRatio = 5n
/**
 * An anomaly ends when the hour falls below half of that multiple or below half of the floor. The gap prevents repeated events for an hour
 * near the threshold. An hour that stays high becomes the usual hour within two days. Our choice.
 */
const overShare = 2n
/** An hour below these sums is never an anomaly, however quiet the week was: ₹100, 50 failed calls, 200,000 tokens. Our choice. */
export const anomalyFloor: UsageSums = { spend: 100_000_000n, errors: 50n, tokens: 200_000n }

export interface HourAgainstWeek {
  /** Sum of the last hour. */
  readonly observed: bigint
  /** Sum of the baseline. */
  readonly total: bigint
  /** Hours of history in the baseline. */
  readonly hours: number
}

/** `begins` causes an event. `over` ends a running anomaly. */
export type AnomalyVerdict = 'quiet' | 'begins' | 'goes_on' | 'over'

/**
 * Returns the state of an anomaly. It begins when the last hour reaches the floor and is at least five times the mean hour of the baseline.
 * If the baseline is 0, the floor alone decides. A running anomaly continues until it is over, however short the history is.
 */
export function judgeHour(metric: AnomalyMetric, { observed, total, hours }: HourAgainstWeek, goesOn: boolean): AnomalyVerdict {
  const floor = anomalyFloor[metric]
  if (goesOn) {
    const isOver = observed * overShare < floor || observed * BigInt(Math.max(hours, 1)) * overShare < anomalyRatio * total
    return isOver ? 'over' : 'goes_on'
  }
  if (hours < baselineHoursMin || observed < floor) return 'quiet'
  return observed * BigInt(hours) >= anomalyRatio * total ? 'begins' : 'quiet'
}

/** Returns the mean hour of the baseline, in the unit of its sums. */
export function meanHour({ total, hours }: HourAgainstWeek): number {
  return hours <= 0 ? 0 : Number((total * 1000n) / BigInt(hours)) / 1000
}

/** Returns the observed hour as a multiple of the mean hour, rounded down to two decimals. Null when the baseline is 0. */
export function ratioOf({ observed, total, hours }: HourAgainstWeek): number | null {
  return total <= 0n ? null : Number((observed * BigInt(hours) * 100n) / total) / 100
}
