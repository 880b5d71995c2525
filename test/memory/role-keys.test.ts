import { expect, test } from 'vitest'
import { refreshed } from '../../src/memory/stores/s3/aws-identity.ts'
import { steppedClock } from '../gateway/routing/world.ts'

test('HARD-04 when a store repeatedly reports expired keys, the gateway fetches new ones at a limited rate and still renews expiring keys', async () => {
  const clock = steppedClock()
  let fetched = 0
  const keys = refreshed(clock, async () => {
    fetched++
    return { accessKeyId: `${fetched}`, secretAccessKey: 's', expiration: new Date(clock.nowMs() + 3_600_000) }
  })
  await keys()
  for (let count = 0; count < 50; count++) await keys({ forceRefresh: true })
  expect(fetched).toBe(2)
  clock.step(30_000)
  expect((await keys({ forceRefresh: true })).accessKeyId).toBe('3')
  expect((await keys({ forceRefresh: true })).accessKeyId).toBe('3')
  clock.step(3_600_000)
  expect((await keys()).accessKeyId).toBe('4')
})

test('HARD-04 when a role cannot be assumed, the gateway retries after a pause that grows to a minute, independent of the number of calls', async () => {
  const clock = steppedClock()
  let asked = 0
  let isRefused = true
  const keys = refreshed(clock, async () => {
    asked++
    if (isRefused) throw new Error('refused')
    return { accessKeyId: 'a', secretAccessKey: 's' }
  })
  const callOften = async (): Promise<void> => {
    for (let calls = 0; calls < 20; calls++) await expect(keys()).rejects.toThrow('refused')
  }
  for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    const before = asked
    await callOften()
    expect(asked).toBe(before + 1)
    clock.step(pauseMs - 1)
    await callOften()
    expect(asked).toBe(before + 1)
    clock.step(1)
  }
  isRefused = false
  expect(await keys()).toMatchObject({ accessKeyId: 'a' })
})
