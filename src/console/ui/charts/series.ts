/** One thing of a chart: its value on each day, in the order of the days. */
export interface Series {
  readonly name: string
  readonly values: readonly number[]
  /** True for the sum of all that has no series of its own. */
  readonly isRest?: boolean
}

/** Series with a colour of their own. */
const seriesMax = 7
const sumOf = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Returns the largest series, and the sum of all others as one more. Series without a value are left out. */
export function withRest(all: readonly Series[]): Series[] {
  const sorted = all
    .map(series => ({ series, sum: sumOf(series.values) }))
    .filter(({ sum }) => sum > 0)
    .sort((a, b) => b.sum - a.sum)
    .map(({ series }) => series)
  const rest = sorted.slice(seriesMax)
  if (rest.length === 0) return sorted
  const length = Math.max(...rest.map(({ values }) => values.length))
  const values = Array.from({ length }, (_, place) => sumOf(rest.map(one => one.values[place] ?? 0)))
  return [...sorted.slice(0, seriesMax), { name: `${rest.length} others`, isRest: true, values }]
}
