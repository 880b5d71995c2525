/** When the last hour of an organisation is an anomaly: the rule alone, without a clock or a database. */

export const anomalyMetrics = ['spend', 'errors', 'tokens'] as const
export type AnomalyMetric = (typeof anomalyMetrics)[number]

/** Sums of a span of usage: value in micro-rupees (own provider keys too), calls that went wrong, prompt and completion tokens. */
export type UsageSums = Readonly<Record<AnomalyMetric, bigint>>

/** How many hours before the observed one are the baseline. */
export const baselineHoursMax = 7 * 24
/** With less history than this many hours an organisation is new: it has no usual hour yet, and its first calls are no anomaly. Ours. */
export const baselineHoursMin = 24
/** The factor over the mean of the baseline that makes an anomaly. */
export const anomalyRatio = 5n
/**
 * It is over below half of that, or below half of the floor. The gap keeps an hour that wavers around the mark from being told again
 * and again; an hour that stays high becomes the usual one within two days. Ours.
 */
const overShare = 2n
/** Less than this is never an anomaly, however quiet the week was: ₹100, 50 failed calls, 200,000 tokens in an hour. Ours. */
export const anomalyFloor: UsageSums = { spend: 100_000_000n, errors: 50n, tokens: 200_000n }

export interface HourAgainstWeek {
  /** Sum of the last hour. */
  readonly observed: bigint
  /** Sum of the baseline. */
  readonly total: bigint
  /** Hours of history that the baseline has. */
  readonly hours: number
}

/** `begins` is reported. `over` ends a running anomaly. */
export type AnomalyVerdict = 'quiet' | 'begins' | 'goes_on' | 'over'

/**
 * An anomaly begins when the last hour reaches the floor and is at least five times the mean hour of the baseline; against a baseline
 * of nothing the floor alone decides. It goes on until it is over, whatever the history.
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

/** Mean hour of the baseline, in the unit of its sums. */
export function meanHour({ total, hours }: HourAgainstWeek): number {
  return hours <= 0 ? 0 : Number((total * 1000n) / BigInt(hours)) / 1000
}

/** How many times the mean hour, with two decimals, rounded down; null against a baseline of nothing. */
export function ratioOf({ observed, total, hours }: HourAgainstWeek): number | null {
  return total <= 0n ? null : Number((observed * BigInt(hours) * 100n) / total) / 100
}
