import { expect, test } from 'vitest'
import { deliverMany } from './load.ts'

test('of many deliveries with some failures, none is lost, and no endpoint gets more concurrent deliveries than its limit', async () => {
  const { delivered, lost, failures, atOnceMax } = await deliverMany(200, true)
  expect({ delivered, lost }).toEqual({ delivered: 200, lost: 0 })
  expect(failures).toBeGreaterThanOrEqual(8)
  expect(atOnceMax).toBeLessThanOrEqual(4)
})
