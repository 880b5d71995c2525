import fc from 'fast-check'
import { expect, test } from 'vitest'
import { latencyBucket, quantileMs } from '../../src/platform/observe/latency-buckets.ts'

test('a latency is in the bucket whose bounds contain it', () => {
  expect([0, 0.4, 1, 2, 4, 1e9].map(latencyBucket)).toEqual([0, 0, 0, 8, 16, 200])
  for (const ms of [3, 10, 99, 1234, 60_000]) {
    const bucket = latencyBucket(ms)
    expect([2 ** (bucket / 8) <= ms, ms < 2 ** ((bucket + 1) / 8)]).toEqual([true, true])
  }
})

test('a quantile from buckets is at most 4.5 % away from the measurement, for any order of the buckets', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 3_600_000 }), { minLength: 1, maxLength: 300 }), fc.constantFrom(0.5, 0.95, 1), (latencies, share) => {
      const counts = new Map<number, number>()
      for (const ms of latencies) counts.set(latencyBucket(ms), (counts.get(latencyBucket(ms)) ?? 0) + 1)
      const exact = latencies.toSorted((a, b) => a - b)[Math.ceil(share * latencies.length) - 1] ?? 0
      const estimate =
        quantileMs(
          [...counts].map(([bucket, count]) => ({ bucket, count })),
          share,
        ) ?? 0
      // Rounding to whole milliseconds adds to the error.
      return estimate <= exact * 2 ** (1 / 16) + 0.5 && estimate >= exact / 2 ** (1 / 16) - 0.5
    }),
  )
  expect([quantileMs([], 0.5), quantileMs([{ bucket: 8, count: 0 }], 0.5)]).toEqual([null, null])
})
