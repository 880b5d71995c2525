/** The rule that decides whether the last hour of an organisation is an anomaly. It reads no clock and no database. */

export const anomalyMetrics = ['spend', 'errors', 'tokens'] as const
export type AnomalyMetric = (typeof anomalyMetrics)[number]

/** Sums of a span: value in micro-rupees (including calls on own provider keys), number of failed calls, and prompt plus completion tokens. */
export type UsageSums = Readonly<Record<AnomalyMetric, bigint>>

/** Maximum number of hours in the baseline. They are the hours before the observed hour. */
export const baselineHoursMax = 7 * 24
/** Minimum number of hours of history. An organisation with fewer hours has no usual hour yet, so its first calls are not an anomaly. Our choice. */
export const baselineHoursMin = 24
/** An hour is an anomaly when it reaches this multiple of the baseline's mean. */
export const anomalyRatio = 5n
/**
 * An anomaly ends when the hour falls below the multiple or the floor, divided by this number. The gap prevents repeated events for an hour near the
 * threshold. An hour that stays high becomes the usual hour within two days. Our choice.
 */
const overShare = 2n
/** The floor: ₹100, 50 failed calls, 200,000 tokens. An hour below it is never an anomaly, even after a quiet week. Our choice. */
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
 * Returns the state of an anomaly. An anomaly begins when the last hour reaches the floor and is at least five times the mean hour of the baseline.
 * When the baseline is 0, the floor alone decides. A running anomaly continues until it is over, even when the history is short.
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
