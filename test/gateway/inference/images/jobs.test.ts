/** Image jobs at providers: when they are given up, and what a call that ends earlier leaves behind. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../../src/platform/clock.ts'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { type ImageProviders, keys, startImageProviders } from './image-providers.ts'

/** The machine's clock, but what waits for `watchedMs` waits for `strike()` instead. */
function strikingClock(watchedMs: number): Clock & { strike(): void; readonly waiting: number } {
  const waiting = new Set<() => void>()
  return {
    ...systemClock,
    after(ms, fn) {
      if (ms !== watchedMs) return systemClock.after(ms, fn)
      waiting.add(fn)
      return () => void waiting.delete(fn)
    },
    strike() {
      for (const fn of waiting) fn()
      waiting.clear()
    },
    get waiting() {
      return waiting.size
    },
  }
}

describe('image jobs', () => {
  let app: TestApp
  let providers: ImageProviders
  let clock: ReturnType<typeof strikingClock>
  beforeAll(async () => {
    providers = await startImageProviders()
    // The deadline as it is without a setting: 120 s.
    clock = strikingClock(120_000)
    app = await startApp({ clock, env: { ...providers.env, IMAGE_POLL_MS: '10', CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => {
    providers.reset()
    providers.pendingLooks = Number.POSITIVE_INFINITY
  })

  const make = (body: object, signal?: AbortSignal) =>
    app.call('POST', '/v1/images/generations', { prompt: 'a slow boat', ...body }, signal === undefined ? {} : { signal })
  const alibaba = { model: 'qwen-image', upstream_key: keys.alibaba }
  const bfl = { model: 'flux-1-pro', upstream_key: keys['black-forest-labs'], provider: 'black-forest-labs' }
  const looks = () => providers.seen.filter(({ method }) => method === 'GET').length
  const cancels = () => providers.seen.filter(({ path }) => path.endsWith('/cancel'))
  const totals = async () => {
    await app.gateway.app.limits.flushNow()
    const { requests, cost_uinr, value_inr } = (await app.call('GET', '/v1/usage')).json.totals
    return { requests, cost: cost_uinr, value: Math.round(value_inr * 1e6) }
  }
  /** What has come into the books since. */
  const since = async (before: Awaited<ReturnType<typeof totals>>) => {
    const now = await totals()
    return { requests: now.requests - before.requests, cost: now.cost - before.cost, value: now.value - before.value }
  }
  /** Nobody looks at the jobs of before while another job is looked at three times and ends. */
  const nobodyLooks = async () => {
    const seen = looks()
    providers.pendingLooks = 3
    expect((await make({ ...bfl, seed: 1 })).status).toBe(200)
    expect(looks()).toBe(seen + 4)
  }

  test('a job has 120 s: then it is given up with a 502, its provider is told, and nobody looks at it any more', async () => {
    const before = await totals()
    const call = make(alibaba)
    await until(() => looks() >= 3)
    expect(clock.waiting).toBe(1)
    clock.strike()
    const reply = await call
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(reply.json.error.message).toContain('did not finish the image within 120 s')
    await until(() => cancels().length === 1)
    expect(cancels()[0]?.headers.authorization).toBe(`Bearer ${keys.alibaba}`)
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 0 })
    await nobodyLooks()
  })

  test('a submission, or a look, that is never answered ends at the deadline too', async () => {
    for (const [body, method] of [
      [alibaba, 'POST'],
      [bfl, 'GET'],
      [{ model: 'gpt-image-1', upstream_key: keys.openai }, 'POST'],
    ] as const) {
      providers.reset()
      providers.pendingLooks = Number.POSITIVE_INFINITY
      providers.answer(one => (one.method === method ? 'hang' : undefined))
      const call = make(body)
      await until(() => providers.seen.some(one => one.method === method))
      clock.strike()
      expect((await call).status).toBe(502)
      await until(() => providers.seen.find(one => one.method === method)?.aborted === true)
    }
  })

  test('a connection that breaks while a job is looked at is no end of it; six times in a row is, and the job is cancelled', async () => {
    let breaks = 5
    providers.pendingLooks = 8
    providers.answer(({ method }) => {
      if (method === 'GET' && breaks-- > 0) throw new Error('the provider hangs up')
      return undefined
    })
    expect((await make(alibaba)).status).toBe(200)
    expect(cancels()).toEqual([])
    const begun = providers.seen.length
    breaks = Number.POSITIVE_INFINITY
    const reply = await make({ ...alibaba, seed: 2 })
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(reply.json.error.message).toContain('could not be reached')
    await until(() => cancels().length === 1)
    expect(providers.seen.slice(begun).filter(({ method }) => method === 'GET')).toHaveLength(6)
  })

  test('a call that is done leaves no timer behind', async () => {
    providers.pendingLooks = 1
    expect((await make(bfl)).status).toBe(200)
    expect(clock.waiting).toBe(0)
  })

  test('when the client goes away the looks end, a job that can be cancelled is, and the call is in the books', async () => {
    const before = await totals()
    const gone = new AbortController()
    const call = make(alibaba, gone.signal).catch(() => null)
    await until(() => looks() >= 2)
    gone.abort()
    await call
    await until(() => cancels().length === 1)
    expect(clock.waiting).toBe(0)
    await until(async () => (await since(before)).requests === 1)
    // The provider draws and bills what was asked for, so one picture of ₹3.36 counts.
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 3_360_000 })
    await nobodyLooks()
  })

  test('a job without a way to cancel is simply left', async () => {
    const before = await totals()
    const gone = new AbortController()
    const call = make(bfl, gone.signal).catch(() => null)
    await until(() => looks() >= 2)
    gone.abort()
    await call
    await until(async () => (await since(before)).requests === 1)
    await nobodyLooks()
    expect(cancels()).toEqual([])
  })

  test('several pictures at once end together at the deadline, and those that are done by then are given', async () => {
    providers.answer(({ method, path }) => {
      if (method !== 'GET' || !path.endsWith('task-1')) return undefined
      return { body: { output: { task_status: 'SUCCEEDED', results: [{ url: 'https://images.example/done.png' }] } } }
    })
    const before = await totals()
    const call = make({ ...alibaba, n: 3 })
    await until(() => providers.seen.filter(({ path }) => path.endsWith('task-2') || path.endsWith('task-3')).length >= 4)
    clock.strike()
    const reply = await call
    expect([reply.status, reply.json.data]).toEqual([200, [{ url: 'https://images.example/done.png' }]])
    await until(() => cancels().length === 2)
    // ₹3.36 an image: one was delivered.
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 3_360_000 })
  })

  test('a revoked agent ends its running job', async () => {
    const agent = await app.newAgent('painter')
    const call = app.call('POST', '/v1/images/generations', { prompt: 'a slow boat', ...alibaba }, { token: agent.token })
    await until(() => looks() >= 2)
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const reply = await call
    expect(reply.status).toBe(401)
    await until(() => cancels().length === 1)
  })

  test('a panel whose client goes away ends with all its members, and no judge is asked', async () => {
    const before = await totals()
    providers.answer(() => 'hang')
    const gone = new AbortController()
    const call = make({ model: 'image-sangam', upstream_key: keys.together }, gone.signal).catch(() => null)
    await until(() => providers.seen.length === 3)
    gone.abort()
    await call
    await until(() => providers.seen.every(one => one.aborted))
    await until(async () => (await since(before)).requests === 3)
    expect(app.alpha.requests).toEqual([])
  })
})
