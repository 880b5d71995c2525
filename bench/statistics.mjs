/** The statistics of the bench. */

/** Returns nearest-rank percentiles and the largest value. Returns null without values. Sorts `values` in place. */
export function percentilesOf(values) {
  if (values.length === 0) return null
  values.sort((a, b) => a - b)
  const at = share => values[Math.min(values.length - 1, Math.ceil(values.length * share) - 1)]
  return { count: values.length, p50: at(0.5), p99: at(0.99), max: values.at(-1) }
}

/** Returns the middle value (the mean of the two middle ones), over the numbers among `values`. Returns null without any number. */
export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The certainty with which the bounds of `medianBounds` contain the median of the sampled distribution. */
const certainty = 0.95

/**
 * Returns the narrowest pair of values, equally far from both ends, that contains the median of the sampled distribution with at least 95 %
 * certainty. It uses the sign test, which assumes nothing about the distribution. Returns null for fewer than six values.
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
