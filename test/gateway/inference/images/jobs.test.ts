/** Image jobs at providers: when the gateway abandons them, and what happens when a call ends earlier. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../../src/platform/clock.ts'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { type ImageProviders, keys, startImageProviders } from './image-providers.ts'

/** The machine's clock, except that timers of `watchedMs` fire when the test calls `strike()`. */
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
    // The default deadline is 120 s.
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
  /** Returns the usage since an earlier total. */
  const since = async (before: Awaited<ReturnType<typeof totals>>) => {
    const now = await totals()
    return { requests: now.requests - before.requests, cost: now.cost - before.cost, value: now.value - before.value }
  }
  /** Checks that earlier jobs are not polled while another job is polled three times and ends. */
  const nobodyLooks = async () => {
    const seen = looks()
    providers.pendingLooks = 3
    expect((await make({ ...bfl, seed: 1 })).status).toBe(200)
    expect(looks()).toBe(seen + 4)
  }

  test('a job is abandoned after 120 s with a 502, is cancelled at its provider, and is not polled again', async () => {
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

  test('a submission or poll without an answer also ends at the deadline', async () => {
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

  test('one broken connection during a poll does not end the job, but after six in a row the job is cancelled', async () => {
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

  test('a finished call leaves no timer running', async () => {
    providers.pendingLooks = 1
    expect((await make(bfl)).status).toBe(200)
    expect(clock.waiting).toBe(0)
  })

  /** Submits a job and disconnects after its second poll. */
  const makeAndLeave = async (body: object) => {
    const gone = new AbortController()
    const call = make(body, gone.signal).catch(() => null)
    await until(() => looks() >= 2)
    gone.abort()
    await call
    const seen = looks()
    await until(() => looks() > seen + 1)
  }

  test('EDGE-08 a job whose caller disconnects is polled to its end, and its picture is charged', async () => {
    const before = await totals()
    await makeAndLeave(alibaba)
    providers.pendingLooks = 1
    await until(async () => (await since(before)).requests === 1)
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 3_360_000 })
    expect([cancels().length, clock.waiting]).toEqual([0, 0])
    providers.reset()
    await nobodyLooks()
  })

  test('EDGE-08 a job whose caller disconnects costs nothing if it fails or misses the deadline, and no other route is tried', async () => {
    for (const end of ['fails', 'late'] as const) {
      providers.reset()
      providers.pendingLooks = Number.POSITIVE_INFINITY
      const before = await totals()
      await makeAndLeave(alibaba)
      if (end === 'late') clock.strike()
      else providers.answer(({ method }) => (method === 'GET' ? { body: { output: { task_status: 'FAILED', message: 'no' } } } : undefined))
      await until(async () => (await since(before)).requests === 1)
      expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 0 })
      expect(providers.seen.filter(({ method, path }) => method === 'POST' && !path.endsWith('/cancel'))).toHaveLength(1)
      expect(cancels()).toHaveLength(end === 'late' ? 1 : 0)
    }
  })

  test('EDGE-08 when the caller of four pictures disconnects, only the two that were made are charged', async () => {
    providers.answer(({ method, path }) => {
      if (method !== 'GET') return undefined
      const isMade = path.endsWith('task-1') || path.endsWith('task-2')
      return {
        body: {
          output: isMade ? { task_status: 'SUCCEEDED', results: [{ url: 'https://images.example/done.png' }] } : { task_status: 'FAILED', message: 'no' },
        },
      }
    })
    const before = await totals()
    const gone = new AbortController()
    const call = make({ ...alibaba, n: 4 }, gone.signal).catch(() => null)
    await until(() => providers.seen.length >= 1)
    gone.abort()
    await call
    await until(async () => (await since(before)).requests === 1)
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 2 * 3_360_000 })
  })

  test('EDGE-08 a revocation ends a job whose caller has disconnected, and a picture that did not arrive is not charged', async () => {
    const agent = await app.newAgent('left painter')
    const before = await totals()
    const gone = new AbortController()
    const body = { prompt: 'a slow boat', ...alibaba }
    const call = app.call('POST', '/v1/images/generations', body, { token: agent.token, signal: gone.signal }).catch(() => null)
    await until(() => looks() >= 2)
    gone.abort()
    await call
    const seen = looks()
    await until(() => looks() > seen + 1)
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    await until(() => cancels().length === 1)
    await until(async () => (await since(before)).requests === 1)
    expect(await since(before)).toEqual({ requests: 1, cost: 0, value: 0 })
    await nobodyLooks()
  })

  test('at the deadline all concurrent pictures of a call end, and the finished ones are returned', async () => {
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
    // At ₹3.36 for an image, one was delivered.
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

  test('EDGE-08 a panel whose client disconnects is charged for the pictures that were made, and no judge is called', async () => {
    const before = await totals()
    let go = (): void => {}
    const going = new Promise<void>(resolve => {
      go = resolve
    })
    let asked = 0
    providers.answer(async () => {
      const isFirst = ++asked === 1
      await going
      return isFirst ? undefined : { status: 500, body: { error: { message: 'broken', type: 'server_error', code: null } } }
    })
    const gone = new AbortController()
    const call = make({ model: 'image-sangam', upstream_key: keys.together }, gone.signal).catch(() => null)
    await until(() => providers.seen.length === 3)
    gone.abort()
    await call
    go()
    await until(async () => (await since(before)).requests === 3)
    const { value } = await since(before)
    // One of the three members made a picture, for its own price of ₹0.26, ₹2.40 or ₹0.30.
    expect([260_000, 300_000, 2_400_000]).toContain(value)
    expect(providers.seen.some(one => one.aborted)).toBe(false)
    expect(app.alpha.requests).toEqual([])
  })
})
