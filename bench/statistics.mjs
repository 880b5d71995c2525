/** The little arithmetic of the bench. */

/** Nearest-rank percentiles and the largest value; null without values. Sorts `values` in place. */
export function percentilesOf(values) {
  if (values.length === 0) return null
  values.sort((a, b) => a - b)
  const at = share => values[Math.min(values.length - 1, Math.ceil(values.length * share) - 1)]
  return { count: values.length, p50: at(0.5), p99: at(0.99), max: values.at(-1) }
}

/** The middle value (the mean of the two middle ones), over the numbers among `values`; null without any. */
export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
