import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { ExpiringCache } from '../../src/platform/loop/expiring-cache.ts'

function fixture(load: (key: string) => Promise<string | null>) {
  let nowMs = 0
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs }
  return { cache: new ExpiringCache({ max: 10, ttlMs: 1000, clock, load }), advance: (ms: number) => (nowMs += ms) }
}

describe('the expiring cache', () => {
  test('many concurrent misses cause one load, and a hit is synchronous', async () => {
    let loads = 0
    const { cache } = fixture(async key => `${key}${++loads}`)
    expect(await Promise.all([cache.get('a'), cache.get('a'), cache.get('a')])).toEqual(['a1', 'a1', 'a1'])
    expect(cache.get('a')).toBe('a1')
  })

  test('a value is cached for its time to live, and a missing value for a tenth of that time', async () => {
    let loads = 0
    const { cache, advance } = fixture(async key => {
      loads++
      return key === 'none' ? null : key
    })
    await cache.get('a')
    await cache.get('none')
    advance(150)
    await cache.get('none')
    expect(cache.get('a')).toBe('a')
    expect(loads).toBe(3)
    advance(1000)
    expect(cache.peek('a')).toBeUndefined()
  })

  test('a load that began before an invalidation does not restore the old value', async () => {
    const answers: ((value: string) => void)[] = []
    const { cache } = fixture(() => new Promise(resolve => answers.push(resolve)))
    const first = cache.get('a')
    cache.invalidate('a')
    answers[0]?.('old')
    await first
    expect(cache.peek('a')).toBeUndefined()
  })

  test('while the source fails, the old value is returned, but only for a limited time', async () => {
    let isAway = false
    const { cache, advance } = fixture(async key => {
      if (isAway) throw new Error('away')
      return key
    })
    await cache.get('a')
    isAway = true
    advance(1500)
    expect(await cache.get('a')).toBe('a')
    advance(20_000)
    await expect(cache.get('a')).rejects.toThrow('away')
  })

  test('a value in the second half of its time to live is returned immediately and loaded again once in the background', async () => {
    let loads = 0
    const { cache, advance } = fixture(async key => `${key}${++loads}`)
    await cache.get('a')
    advance(400)
    expect([cache.get('a'), loads]).toEqual(['a1', 1])
    advance(200)
    expect([cache.get('a'), cache.get('a'), loads]).toEqual(['a1', 'a1', 2])
    await new Promise(resolve => setImmediate(resolve))
    advance(900)
    expect(cache.peek('a')).toBe('a2')
  })

  test('when the load in the background failed or is late, no caller waits for the next one', async () => {
    for (const late of [() => Promise.reject(new Error('away')), () => new Promise<string>(() => {})]) {
      let isAway = false
      const { cache, advance } = fixture(key => (isAway ? late() : Promise.resolve(key)))
      await cache.get('a')
      isAway = true
      advance(600)
      expect(cache.get('a')).toBe('a')
      await new Promise(resolve => setImmediate(resolve))
      advance(900)
      expect(cache.get('a')).toBe('a')
    }
  })

  test('matching values are dropped and others stay, also values that were being loaded', async () => {
    let loads = 0
    const waiting: ((value: string) => void)[] = []
    const { cache } = fixture(key => (key === 'slow' && loads < 100 ? new Promise(resolve => waiting.push(resolve)) : Promise.resolve(`${key}${++loads}`)))
    for (const key of ['a', 'b', 'c', 'd']) await cache.get(key)
    const slow = cache.get('slow')
    cache.invalidateWhere(value => value.startsWith('a') || value.startsWith('d'))
    expect(['a', 'b', 'c', 'd'].map(key => cache.peek(key))).toEqual([undefined, 'b2', 'c3', undefined])
    waiting[0]?.('old')
    expect(await slow).toBe('old')
    expect(cache.peek('slow')).toBe('old')
    expect(await cache.get('a')).toBe('a5')
    expect(loads).toBe(5)
  })

  test('values have a maximum of bytes together: the least recently used one is dropped, and a larger value is not stored', async () => {
    const bytes = { max: 1000, sizeOf: (value: string) => value.length }
    const cache = new ExpiringCache({ max: 10, bytes, ttlMs: 1000, clock: systemClock, load: async (key: string) => key.repeat(400) })
    for (const key of ['a', 'b', 'a', 'c']) await cache.get(key)
    expect(['a', 'b', 'c'].map(key => cache.peek(key)?.length)).toEqual([400, undefined, 400])
    expect(cache.sizeBytes).toBe(800)
    expect((await cache.get('long'))?.length).toBe(1600)
    expect(cache.peek('long')).toBeUndefined()
    expect(cache.sizeBytes).toBe(800)
  })

  test('a load that began before a matching invalidation is neither stored nor given to later requests', async () => {
    const answers: ((value: string) => void)[] = []
    const { cache } = fixture(() => new Promise(resolve => answers.push(resolve)))
    const before = cache.get('a')
    cache.invalidateWhere(value => value.startsWith('old'))
    const after = cache.get('a')
    expect(answers).toHaveLength(2)
    answers[0]?.('old value')
    answers[1]?.('new value')
    expect([await before, await after]).toEqual(['old value', 'new value'])
    expect(cache.peek('a')).toBe('new value')
  })

  test('missing values drop no value, however many keys are asked for', async () => {
    const { cache } = fixture(async key => (key.startsWith('none') ? null : key))
    await cache.get('a')
    for (let at = 0; at < 30; at++) await cache.get(`none ${at}`)
    expect([cache.peek('a'), cache.peek('none 29'), cache.peek('none 0')]).toEqual(['a', null, undefined])
  })

  test('invalidations of other keys while a value loads do not keep it out of the cache', async () => {
    const answers: ((value: string) => void)[] = []
    const { cache } = fixture(() => new Promise(resolve => answers.push(resolve)))
    const loading = cache.get('a')
    for (let at = 0; at < 10; at++) cache.invalidate(`other ${at}`)
    answers[0]?.('a')
    await loading
    expect(cache.peek('a')).toBe('a')
  })

  test('a source that does not answer delays no caller that has an old value, and its late failure has no effect', async () => {
    const answers: { resolve(value: string): void; reject(error: Error): void }[] = []
    const { cache, advance } = fixture(() => new Promise((resolve, reject) => answers.push({ resolve, reject })))
    const first = cache.get('a')
    answers[0]?.resolve('old')
    await first
    advance(1500)
    // The source does not answer within the time that the first caller waits. The second caller finds the answer overdue and does not wait.
    expect(await cache.get('a')).toBe('old')
    advance(1000)
    expect(cache.get('a')).toBe('old')
    expect(answers).toHaveLength(2)
    answers[1]?.reject(new Error('away'))
    await expect
      .poll(() => {
        void cache.get('a')
        return answers.length
      })
      .toBe(3)
    answers[2]?.resolve('new')
    await expect.poll(() => cache.peek('a')).toBe('new')
  })
})
