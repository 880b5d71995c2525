/** A caller who disconnects pays for the provider's work as far as it can be known, so disconnecting is never cheaper than reading to the end. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Departure } from '../../../src/gateway/inference/leaving/departure.ts'
import { Departures, readOnLongestMs, readOnMs } from '../../../src/gateway/inference/leaving/departures.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'

interface Row {
  readonly label: string
  readonly outcome: string
  readonly status: number
  readonly estimated: boolean
  readonly prompt: number
  readonly completion: number
}
const rowsOfKey = statement<[keyId: number], Row>(
  'test.left_rows_of_key',
  `select agent_label as "label", outcome, status, estimated, prompt_tokens::int as "prompt", completion_tokens::int as "completion" from usage_events where key_id = $1::int order by id`,
)

const rowsOfAgent = statement<[agentId: number], Row>(
  'test.left_rows_of_agent',
  `select agent_label as "label", outcome, status, estimated, prompt_tokens::int as "prompt", completion_tokens::int as "completion" from usage_events where agent_id = $1::int order by id`,
)

/** ₹0.001 for each output token. */
const route = { provider: 'alpha', input_inr_per_mtok: 0, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }
const common = { kind: 'chat', context_length: 200_000, max_output_tokens: 100_000 }
const models = [
  { ...common, id: 'thinker', reasoning: true, routes: [{ ...route, upstream_model: 'thinker-up' }] },
  { ...common, id: 'speaker', routes: [{ ...route, upstream_model: 'speaker-up' }] },
]

const clients: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Think' }] },
  '/v1/messages': { max_tokens: 50_000, messages: [{ role: 'user', content: 'Think' }] },
  '/v1/responses': { input: 'Think' },
}

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'thinker-up', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usageChunk = (completion: number) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'thinker-up', choices: [], usage: { prompt_tokens: 10, completion_tokens: completion, total_tokens: completion + 10 } })}\n\n`

/** What a provider generates in each part: 30 characters count as 10 tokens, and hidden thinking is 100 tokens for each part. */
const kinds = {
  visible: { tokens: 10, part: () => chunk({ content: 'abcdefghij'.repeat(3) }) },
  'visible reasoning': { tokens: 10, part: () => chunk({ reasoning_content: 'abcdefghij'.repeat(3) }) },
  'unseen reasoning': { tokens: 100, part: () => ': thinking\n\n' },
} as const
const points = 50

/** The machine's clock, except that the timers that end the reading after a disconnect fire with `strike()`. The test can move the time forward. */
function strikingClock(): Clock & { strike(): void; ahead(ms: number): void } {
  const waiting = new Set<() => void>()
  let aheadMs = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    after(ms, fn) {
      if (ms < readOnMs / 2 || ms > readOnLongestMs) return systemClock.after(ms, fn)
      waiting.add(fn)
      return () => void waiting.delete(fn)
    },
    strike() {
      for (const fn of waiting) fn()
      waiting.clear()
    },
    ahead(ms) {
      aheadMs += ms
    },
  }
}

describe('a caller who leaves', () => {
  let app: TestApp
  let clock: ReturnType<typeof strikingClock>
  beforeAll(async () => {
    clock = strikingClock()
    app = await startApp({
      clock,
      env: { OFFLINE_MAX_MS: '86400000', AGENT_STALE_MS: '86400000', KEEP_ALIVE_MS: '86400000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...models] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const send = (path: string, more: object, key: string, signal: AbortSignal | null, label = 'l') =>
    fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-br-agent-id': label },
      body: JSON.stringify({ ...clients[path], model: 'thinker', stream: true, ...more }),
      signal,
    })
  /** A call that continues after a disconnect counts twice as running: as the request and as the continued call. */
  const followed = (count: number) => until(() => app.gateway.app.inflight.size === 2 * count, `${count} calls are followed`)
  const rowsOf = async (keyId: number, count: number): Promise<Row[]> => {
    let rows: Row[] = []
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      rows = await app.db.many(rowsOfKey, keyId)
      return rows.length >= count
    }, `${count} calls are settled`)
    expect(rows).toHaveLength(count)
    expect(await app.gateway.app.limits.budgets.get(app.orgId, 'key', String(keyId))).toMatchObject({ heldUinr: 0n })
    return rows
  }

  const rowsOfAgentId = async (agentId: number): Promise<Row[]> => {
    let rows: Row[] = []
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      rows = await app.db.many(rowsOfAgent, agentId)
      return rows.length > 0
    }, 'the call is settled')
    return rows
  }

  for (const [path] of Object.entries(clients))
    for (const [name, { tokens, part }] of Object.entries(kinds))
      for (const tellsUsage of [true, false]) {
        if (!tellsUsage && name === 'unseen reasoning') continue
        test(`HARD-05 ${path}, ${name}, ${tellsUsage ? 'usage at the end' : 'no usage'}: a caller who disconnects at any of ${points} points pays at least 95 % of the output so far`, async () => {
          const { key, keyId } = await app.newKey({ budgetInr: 100_000 })
          const made = new Map<string, number>()
          const parts = function* (label: string, leftAfter: number) {
            yield chunk({ role: 'assistant', content: 'begun' })
            for (let n = 1; n <= points + 5; n++) {
              if (n <= leftAfter) made.set(label, n * tokens)
              yield part()
            }
            yield chunk({}, 'stop')
            if (tellsUsage) yield usageChunk((points + 5) * tokens + 2)
            yield 'data: [DONE]\n\n'
          }
          let next = 0
          app.alpha.script(() => {
            const leftAfter = next++
            return { rawStream: parts(String(leftAfter), leftAfter), holdAfterRawParts: leftAfter + 1 }
          })
          // The calls run one after the other, so that their order at the provider identifies them.
          for (let point = 0; point < points; point++) {
            const leaving = new AbortController()
            const reply = await send(path, {}, key, leaving.signal, `p${point}`)
            await reply.body?.getReader().read()
            await until(() => point === 0 || made.get(String(point)) === point * tokens, 'the provider has made its part')
            leaving.abort()
          }
          await followed(points)
          app.alpha.release()
          const rows = await rowsOf(keyId, points)
          for (const { label, outcome, completion, estimated } of rows) {
            const produced = made.get(label.slice(1)) ?? 0
            expect([label, outcome, estimated, completion >= produced * 0.95], `${completion} of ${produced}`).toEqual([
              label,
              'client_gone',
              !tellsUsage,
              true,
            ])
            if (tellsUsage) expect(completion).toBe((points + 5) * tokens + 2)
          }
          expect(app.alpha.requests.some(({ aborted }) => aborted)).toBe(false)
        })
      }

  test('HARD-05 a provider without usage is read for 20 s more, and the larger of received output and assumed thinking is charged', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 1000 })
    app.alpha.script([{ holdAfterChunks: 1, chunks: ['x'.repeat(30), ' never'] }])
    const leaving = new AbortController()
    const reply = await send('/v1/chat/completions', {}, key, leaving.signal)
    await reply.body?.getReader().read()
    clock.ahead(60_000)
    leaving.abort()
    await until(() => {
      clock.strike()
      return app.alpha.requests[0]?.aborted === true
    }, 'the provider is hung up on')
    const [row] = await rowsOf(keyId, 1)
    // A minute at 50 tokens a second, plus the shown output.
    expect(row).toMatchObject({ outcome: 'client_gone', estimated: true })
    expect(row?.completion).toBeGreaterThanOrEqual(3010)
    expect(row?.completion).toBeLessThan(3600)
  })

  test('HARD-05 an estimate never exceeds the hold or max_tokens', async () => {
    for (const [more, most] of [
      [{ max_tokens: 700 }, 700],
      [{}, 8192],
    ] as const) {
      app.alpha.reset()
      const { key, keyId } = await app.newKey({ budgetInr: 1000 })
      app.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' never'] }])
      const leaving = new AbortController()
      const reply = await send('/v1/chat/completions', more, key, leaving.signal)
      await reply.body?.getReader().read()
      clock.ahead(3600_000)
      leaving.abort()
      await until(() => {
        clock.strike()
        return app.alpha.requests[0]?.aborted === true
      }, 'the provider is hung up on')
      expect((await rowsOf(keyId, 1))[0]?.completion).toBe(most)
    }
  })

  test('HARD-05 a caller who disconnects before the first byte pays the reported usage, or the assumed thinking so far', async () => {
    for (const stream of [false, true])
      for (const tells of [true, false]) {
        app.alpha.reset()
        const { key, keyId } = await app.newKey({ budgetInr: 1000 })
        app.alpha.script([{ hold: true, usage: { prompt_tokens: 5, completion_tokens: 20_000, total_tokens: 20_005 } }])
        const leaving = new AbortController()
        const call = send('/v1/chat/completions', { stream }, key, leaving.signal).catch(() => null)
        await app.alpha.arrived(1)
        clock.ahead(60_000)
        leaving.abort()
        await call
        await followed(1)
        if (tells) app.alpha.release()
        else
          await until(() => {
            clock.strike()
            return app.alpha.requests[0]?.aborted === true
          }, 'the provider is hung up on')
        const [row] = await rowsOf(keyId, 1)
        expect(row).toMatchObject({ outcome: 'client_gone', status: 499, estimated: !tells })
        if (tells) expect(row?.completion).toBe(20_000)
        else expect(row?.completion).toBeGreaterThanOrEqual(3000)
      }
  })

  test('HARD-05 for a model without hidden thinking, reading stops at the disconnect, and the received output is charged', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 1000 })
    app.alpha.script([{ holdAfterChunks: 1, chunks: ['x'.repeat(300), ' never'] }])
    const leaving = new AbortController()
    const reply = await send('/v1/chat/completions', { model: 'speaker' }, key, leaving.signal)
    await reply.body?.getReader().read()
    leaving.abort()
    await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
    expect((await rowsOf(keyId, 1))[0]).toMatchObject({ outcome: 'client_gone', completion: 100 })
  })

  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBORw0KGgo'.repeat(50)}` } }
  const withPicture = { model: 'speaker', messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, picture] }] }
  const told = { prompt_tokens: 40_000, completion_tokens: 7, total_tokens: 40_007 }

  test('HARD-05 when the prompt has a picture, the provider is read until it reports the prompt tokens, even without hidden thinking', async () => {
    for (const stream of [true, false]) {
      app.alpha.reset()
      const { key, keyId } = await app.newKey({ budgetInr: 1000 })
      app.alpha.script([{ ...(stream ? { holdAfterChunks: 1 } : { hold: true }), chunks: ['x', ' and more'], usage: told }])
      const leaving = new AbortController()
      const call = send('/v1/chat/completions', { ...withPicture, stream }, key, leaving.signal).catch(() => null)
      await app.alpha.arrived(1)
      if (stream) await (await call)?.body?.getReader().read()
      leaving.abort()
      await call
      await followed(1)
      app.alpha.release()
      expect((await rowsOf(keyId, 1))[0]).toMatchObject({ outcome: 'client_gone', estimated: false, prompt: 40_000, completion: 7 })
    }
  })

  test('HARD-05 reading stops at the disconnect if the provider has already reported the prompt tokens', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 1000 })
    const first = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'speaker-up', usage: { ...told, completion_tokens: 1 } }
    const begun = `data: ${JSON.stringify({ ...first, choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] })}\n\n`
    app.alpha.script([{ rawStream: [begun], holdAfterRaw: true }])
    const leaving = new AbortController()
    const reply = await send('/v1/chat/completions', withPicture, key, leaving.signal)
    await reply.body?.getReader().read()
    leaving.abort()
    await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
    expect((await rowsOf(keyId, 1))[0]).toMatchObject({ outcome: 'client_gone', estimated: true, prompt: 40_000, completion: 1 })
  })

  test('HARD-05 hidden thinking is assumed to be as fast as the shown output', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 1000 })
    // 300 tokens within two seconds, and then ten seconds of silence.
    const parts = [chunk({ content: 'x'.repeat(300) }), chunk({ content: 'y'.repeat(600) })]
    app.alpha.script([{ rawStream: parts, holdAfterRawParts: 1, holdAfterRaw: true }])
    const leaving = new AbortController()
    const reader = (await send('/v1/chat/completions', {}, key, leaving.signal)).body?.getReader()
    await reader?.read()
    clock.ahead(2000)
    app.alpha.release()
    await reader?.read()
    clock.ahead(10_000)
    leaving.abort()
    await followed(1)
    await until(() => {
      clock.strike()
      return app.alpha.requests[0]?.aborted === true
    }, 'the provider is hung up on')
    const [row] = await rowsOf(keyId, 1)
    expect(row?.estimated).toBe(true)
    // The speed is at most 150 tokens a second, because reading also takes time, but more than 50.
    expect(row?.completion).toBeGreaterThan(300 + 10 * 75)
    expect(row?.completion).toBeLessThan(2500)
  })

  test('HARD-05 a provider that still sends is read for more than 20 s, up to five minutes', () => {
    let nowMs = 0
    const timers = new Map<() => void, number>()
    const timed: Pick<Clock, 'after' | 'monotonicMs'> = {
      monotonicMs: () => nowMs,
      after(ms, fn) {
        timers.set(fn, nowMs + ms)
        return () => void timers.delete(fn)
      },
    }
    const pass = (ms: number): void => {
      nowMs += ms
      for (const [fn, atMs] of [...timers]) {
        if (atMs > nowMs) continue
        timers.delete(fn)
        fn()
      }
    }
    const thrown: unknown[] = []
    const follow = (): Departure => {
      const { inflight } = app.gateway.app
      const origin = new AbortController()
      const owners = { agentIds: [], keyId: null }
      const more = { owners, followMs: () => readOnMs, recheck() {}, onFollowed() {}, onListenerError: (error: unknown) => thrown.push(error) }
      const departure = new Departure(origin.signal, { clock: timed, inflight, departures: new Departures(), orgId: 1, ...more })
      departure.leave(new Error('gone'))
      return departure
    }
    const silent = follow()
    pass(readOnMs - 1)
    expect(silent.aborted).toBe(false)
    pass(1)
    expect(silent.aborted).toBe(true)
    silent.dispose()
    const flowing = follow()
    let flowedMs = 0
    while (!flowing.aborted && flowedMs < 2 * readOnLongestMs) {
      pass(5000)
      flowedMs += 5000
      flowing.flows()
    }
    expect(flowedMs).toBe(readOnLongestMs)
    flowing.dispose()
    expect(thrown).toEqual([])
    // An exception of a listener is reported, and ends neither the process nor the other listeners.
    const failing = follow()
    const broken = new Error('a listener failed')
    let isHeard = false
    failing.addEventListener('abort', () => {
      throw broken
    })
    failing.addEventListener('abort', () => {
      isHeard = true
    })
    pass(readOnMs)
    expect([failing.aborted, isHeard, thrown]).toEqual([true, true, [broken]])
    failing.dispose()
  })

  test('HARD-05 after a disconnect, revoking an agent, its label or a key ends a call without a reply, and does not make a stream cheaper', async () => {
    const cookie = await app.signIn()
    for (const by of ['agent', 'label', 'key'] as const)
      for (const begun of [true, false]) {
        app.alpha.reset()
        const agent = await app.newAgent(`left by ${by} ${begun}`)
        const { key, keyId } = await app.newKey({ budgetInr: 1000 })
        app.alpha.script([begun ? { holdAfterChunks: 1, chunks: ['x', ' and more'], usage: told } : { hang: true }])
        const leaving = new AbortController()
        const label = by === 'label' ? String(agent.id) : 'nobody'
        const call = send('/v1/chat/completions', {}, by === 'agent' ? agent.token : key, leaving.signal, label).catch(() => null)
        await app.alpha.arrived(1)
        if (begun) await (await call)?.body?.getReader().read()
        leaving.abort()
        await call
        const revoked = by === 'key' ? app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie }) : app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
        expect((await revoked).status).toBeLessThan(300)
        if (!begun) {
          await until(() => app.alpha.requests[0]?.aborted === true, `${by} is cut`)
          continue
        }
        app.alpha.release()
        const rows = by === 'agent' ? await rowsOfAgentId(agent.id) : await rowsOf(keyId, 1)
        expect(rows, by).toMatchObject([{ outcome: 'client_gone', estimated: false, completion: 7 }])
        expect(app.alpha.requests[0]?.aborted).toBe(false)
      }
  })

  test('HARD-05 when an organisation has no places left, a call after a disconnect is estimated and its provider is not read on', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 100_000 })
    const count = 66
    app.alpha.script(() => ({ holdAfterChunks: 1, chunks: ['x', ' never'] }))
    const leaving = new AbortController()
    const readers = await Promise.all(
      Array.from({ length: count }, async () => (await send('/v1/chat/completions', {}, key, leaving.signal)).body?.getReader().read()),
    )
    expect(readers).toHaveLength(count)
    leaving.abort()
    await until(() => app.alpha.requests.filter(({ aborted }) => aborted).length === 2, 'two have no place')
    app.alpha.release()
    // Their real usage stays unknown, so the whole hold is charged.
    expect((await rowsOf(keyId, count)).filter(({ estimated }) => estimated).map(({ completion }) => completion)).toEqual([8192, 8192])
  })

  test('HARD-05 a graceful shutdown waits for calls that continue after a disconnect', async () => {
    const other = await startApp({ operatorFile: urls => ({ ...defaultOperatorFile(urls), models }) })
    other.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' and more'] }])
    const leaving = new AbortController()
    const body = JSON.stringify({ ...clients['/v1/chat/completions'], model: 'thinker', stream: true })
    const reply = await fetch(`${other.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${other.key}`, 'content-type': 'application/json' },
      body,
      signal: leaving.signal,
    })
    await reply.body?.getReader().read()
    leaving.abort()
    const stopped = other.gateway.stop()
    await until(
      async () => (await fetch(`${other.baseUrl}/livez`).catch(() => null))?.ok !== true || other.alpha.requests[0]?.aborted === false,
      'the process drains',
    )
    other.alpha.release()
    await stopped
    expect(other.alpha.requests[0]?.aborted).toBe(false)
    await Promise.all([other.alpha.close(), other.beta.close(), other.indus.close()])
  })
})
