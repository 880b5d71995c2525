/** The statistical functions of the bench. */

/** Returns nearest-rank percentiles and the largest value. Returns null without values. Sorts `values` in place. */
export function percentilesOf(values) {
  if (values.length === 0) return null
  values.sort((a, b) => a - b)
  const at = share => values[Math.min(values.length - 1, Math.ceil(values.length * share) - 1)]
  return { count: values.length, p50: at(0.5), p99: at(0.99), max: values.at(-1) }
}

/** Returns the median of the numbers in `values`. For an even count it is the mean of the two middle ones. Returns null without any number. */
export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The confidence level of `medianBounds`. */
const certainty = 0.95

/**
 * Returns a confidence interval of the median with a level of at least 95 %. Its bounds are two of the values, equally far from both ends of the sorted
 * list. It uses the sign test, which assumes nothing about the distribution. Returns null for fewer than six values.
 */
export function medianBounds(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const { length } = sorted
  let outside = 0
  let ways = 1
  let best = null
  for (let left = 0; left < length / 2; left++) {
    outside += (2 * ways) / 2 ** length
    if (1 - outside < certainty) break
    best = { low: sorted[left], high: sorted[length - 1 - left] }
    ways = (ways * (length - left)) / (left + 1)
  }
  return best
}
