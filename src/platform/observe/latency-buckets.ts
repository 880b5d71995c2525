/**
 * Latencies as counts in buckets, eight to a doubling: they add up over days, processes and shards, and a quantile needs no single
 * measurement. Bucket n holds 2^(n/8) ms to below 2^((n+1)/8) ms, bucket 0 everything below as well.
 */
const bucketsPerDoubling = 8
/** Latencies beyond 2^25 ms, nine hours, are in one bucket. */
const bucketMax = 200

/** How many measurements were in one bucket. */
export interface LatencyCount {
  readonly bucket: number
  readonly count: number
}

/** The bucket of a latency in ms. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(bucketMax, Math.floor(bucketsPerDoubling * Math.log2(ms)))
}

/**
 * The latency that a share of the measurements did not exceed, in whole ms; null without any. It is the middle of the bucket, so at most a factor of
 * 2^(1/16), 4.5 %, away from the measured value.
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
