/**
 * Counts latencies in buckets, eight for each doubling. Counts of several days, processes and shards can be added, and a quantile can be calculated from
 * the counts alone. Bucket n contains latencies from 2^(n/8) ms to below 2^((n+1)/8) ms. Bucket 0 also contains everything below.
 */
const bucketsPerDoubling = 8
/** The last bucket. It contains all latencies above 2^25 ms, which is nine hours. */
const bucketMax = 200

/** The number of measurements in one bucket. */
export interface LatencyCount {
  readonly bucket: number
  readonly count: number
}

/** Returns the bucket of a latency in milliseconds. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(bucketMax, Math.floor(bucketsPerDoubling * Math.log2(ms)))
}

/**
 * Returns the latency that a share of the measurements did not exceed, in whole milliseconds. Null without measurements. The result is the
 * middle of a bucket, so it differs from the measured value by at most a factor of 2^(1/16), 4.5 %.
 */
export function quantileMs(counts: readonly LatencyCount[], share: number): number | null {
  const rank = Math.max(1, Math.ceil(share * counts.reduce((sum, { count }) => sum + count, 0)))
  let seen = 0
  for (const { bucket, count } of [...counts].sort((a, b) => a.bucket - b.bucket)) {
    seen += count
    if (seen >= rank) return Math.max(1, Math.round(2 ** ((bucket + 0.5) / bucketsPerDoubling)))
  }
  return null
}
