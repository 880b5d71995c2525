/**
 * 10,000 deliveries with 5 % failures, none lost. `npm run test:chaos` runs it on PostgreSQL; it prints how long it took and how much CPU time.
 */
import { expect, test } from 'vitest'
import { deliverMany } from '../gateway/webhooks/load.ts'

test('of many deliveries with 5 % failures none is lost', { timeout: 360_000 }, async () => {
  const count = Number(process.env['CHAOS_DELIVERIES'] ?? 10_000)
  const { delivered, lost, failures, atOnceMax, tookMs, cpuMs } = await deliverMany(count, false)
  console.info(
    `${count} deliveries, ${failures} failures: ${Math.round(tookMs)} ms, ${Math.round((count / tookMs) * 1000)} a second, ${Math.round(cpuMs)} ms of CPU time`,
  )
  expect({ delivered, lost }).toEqual({ delivered: count, lost: 0 })
  expect(failures).toBeGreaterThan(count / 25)
  expect(atOnceMax).toBeLessThanOrEqual(4)
})
