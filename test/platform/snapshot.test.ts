import { describe, expect, test } from 'vitest'
import { Snapshot } from '../../src/platform/loop/snapshot.ts'
import { namesEtag, publicPage, replyWithPage } from '../../src/platform/public-page.ts'
import { movableClock } from '../harness/clock.ts'

/** Returns a snapshot whose loads the test ends one by one. */
function staged(maxAgeMs = 60_000) {
  const clock = movableClock()
  const loads: { answer: (value: string) => void; refuse: (error: Error) => void }[] = []
  const warnings: string[] = []
  const snapshot = new Snapshot<string>({
    name: 'test',
    clock,
    log: { info() {}, warn: event => warnings.push(event), error() {} },
    maxAgeMs,
    empty: 'nothing',
    firstWaitMs: 200,
    load: () => new Promise((answer, refuse) => loads.push({ answer, refuse })),
  })
  return { clock, loads, warnings, snapshot }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

describe('a snapshot', () => {
  test('many requests share one load, and the value is returned without a wait until it is too old', async () => {
    const { clock, loads, snapshot } = staged()
    const asked = Array.from({ length: 50 }, () => snapshot.get())
    loads[0]?.answer('one')
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['one']))
    expect(snapshot.get()).toBe('one')
    clock.advance(61_000)
    expect([snapshot.get(), snapshot.get()]).toEqual(['one', 'one'])
    expect(loads.length).toBe(2)
    loads[1]?.answer('two')
    await settled()
    expect(snapshot.get()).toBe('two')
    expect(loads.length).toBe(2)
  })

  test('when the clock is set back, the snapshot counts as old', async () => {
    const { clock, loads, snapshot } = staged()
    const first = snapshot.get()
    loads[0]?.answer('one')
    await first
    clock.advance(-3600_000)
    void snapshot.get()
    expect(loads.length).toBe(2)
  })

  test('while loads fail, the last value or the empty one is returned, and the next load does not start immediately', async () => {
    const { clock, loads, warnings, snapshot } = staged()
    const first = snapshot.get()
    loads[0]?.refuse(new Error('away'))
    expect(await first).toBe('nothing')
    expect(snapshot.get()).toBe('nothing')
    expect(loads.length).toBe(1)
    clock.advance(5001)
    const second = snapshot.get()
    loads[1]?.answer('one')
    expect(await second).toBe('one')
    clock.advance(61_000)
    expect(snapshot.get()).toBe('one')
    loads[2]?.refuse(new Error('away'))
    await settled()
    expect(snapshot.get()).toBe('one')
    expect(loads.length).toBe(3)
    expect(warnings).toEqual(['snapshot_failed', 'snapshot_failed'])
  })

  test('a load that hangs delays the first requests only briefly', async () => {
    const { loads, snapshot } = staged()
    expect(await snapshot.get()).toBe('nothing')
    loads[0]?.answer('late')
    await settled()
    expect(snapshot.get()).toBe('late')
  })

  test('requests wait for a new value after an invalidation, and a load that began earlier does not replace it', async () => {
    const { loads, snapshot } = staged()
    const first = snapshot.get()
    loads[0]?.answer('one')
    await first
    snapshot.invalidate()
    const second = snapshot.get()
    snapshot.invalidate()
    const third = snapshot.get()
    loads[1]?.answer('before the change')
    loads[2]?.answer('after the change')
    expect(await third).toBe('after the change')
    await second
    expect(snapshot.get()).toBe('after the change')
  })

  test('a value that was not requested for a long time is loaded again before it is returned', async () => {
    const { clock, loads, snapshot } = staged()
    const first = snapshot.get()
    loads[0]?.answer('one')
    await first
    clock.advance(24 * 3600_000)
    const later = snapshot.get()
    loads[1]?.answer('two')
    expect(await later).toBe('two')
  })
})

describe('a public page', () => {
  test('a public page has an ETag of its bytes, and If-None-Match accepts lists, weak ETags and *', () => {
    const page = publicPage({ a: 1 }, 60)
    expect(page.etag).toMatch(/^"[\w-]{27}"$/)
    expect(publicPage({ a: 1 }, 5).etag).toBe(page.etag)
    expect(publicPage({ a: 2 }, 60).etag).not.toBe(page.etag)
    for (const named of [page.etag, `W/${page.etag}`, `"x", W/${page.etag} , "y"`, '*']) expect(replyWithPage(page, named).status, named).toBe(304)
    for (const named of [undefined, '', '"x"', page.etag.replaceAll('"', '')]) expect(replyWithPage(page, named).status).toBe(200)
    expect(namesEtag('"a"', 'W/"a"')).toBe(true)
    expect(replyWithPage(page, undefined, false).headers['cache-control']).toBe('private, max-age=60')
  })
})
