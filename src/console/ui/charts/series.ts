/** One thing of a chart: its value on each day, in the order of the days. */
export interface Series {
  readonly name: string
  readonly values: readonly number[]
  /** True for the sum of all that has no series of its own. */
  readonly isRest?: boolean
}
