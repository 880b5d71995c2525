/** For every end of a call there is one usage row, no hold remains, and the budget has spent the amount of the row. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { type ImageProviders, keys, startImageProviders } from './images/image-providers.ts'

const rowsOfKey = statement<[keyId: number], { outcome: string; status: number; value: number }>(
  'test.settled_rows_of_key',
  `select outcome, status, value_uinr::int as "value" from usage_events where key_id = $1::int order by id`,
)
const hello = [{ role: 'user', content: 'hello' }]
const clients: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: hello },
  '/v1/messages': { max_tokens: 1000, messages: hello },
  '/v1/responses': { input: 'hello' },
}
const members = ['flux-1-schnell', 'flux-1-dev', 'sdxl']

describe('every end of a call', () => {
  let app: TestApp
  let cookie: string
  let providers: ImageProviders
  let servers: Readonly<Record<string, UpstreamServer>>
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({
      dialects: true,
      env: { ...providers.env, TEST_GANGA_KEY: keys.ganga, CIRCUIT_FAILURES: '1000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const ganga = { id: 'ganga', base_url: `${providers.origin}/ganga/v1`, residency: 'india', api_key_env: 'TEST_GANGA_KEY' }
        return {
          providers: [...file.providers, ganga],
          models: [...file.models, ...members.map(id => ({ id, inr_per_image: 3, routes: [{ provider: 'ganga' }] }))],
        }
      },
    })
    cookie = await app.signIn()
    servers = { 'openai-model': app.alpha, 'anthropic-model': app.others.claude, 'gemini-model': app.others.gem, 'responses-model': app.others.resp }
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => {
    providers.reset()
    for (const server of Object.values(servers)) server.reset()
  })

  const each = async (look: (path: string, model: string, server: UpstreamServer, stream: boolean, at: string) => Promise<void>) => {
    for (const path of Object.keys(clients))
      for (const [model, server] of Object.entries(servers))
        for (const stream of [false, true]) {
          server.reset()
          await look(path, model, server, stream, `${path} ${model} ${stream ? 'stream' : 'whole'}`)
        }
  }
  /** Returns the result of the only call of a key, when no hold of it remains. */
  const endOf = async (keyId: number, at: string) => {
    const budget = () => app.gateway.app.limits.budgets.get(app.orgId, 'key', String(keyId))
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.db.many(rowsOfKey, keyId)).length > 0 && (await budget())?.heldUinr === 0n
    }, `${at} is settled`)
    const rows = await app.db.many(rowsOfKey, keyId)
    expect(rows, at).toHaveLength(1)
    expect(Number((await budget())?.spentUinr), at).toBe(rows[0]?.value)
    return rows[0]
  }
  const send = (path: string, model: string, stream: boolean, key: string, signal: AbortSignal | null = null) =>
    fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...clients[path], model, stream }),
      signal,
    })

  test('a client that disconnects before the first byte pays for the prompt, and for assumed output if the model has hidden thinking', async () => {
    await each(async (path, model, server, stream, at) => {
      const { key, keyId } = await app.newKey({ budgetInr: 5 })
      server.script({ hold: true })
      const leaving = new AbortController()
      const call = send(path, model, stream, key, leaving.signal).catch(() => null)
      await server.arrived(1)
      leaving.abort()
      await call
      await until(() => app.gateway.app.inflight.size === 2, `${at} is followed`)
      server.release()
      const end = await endOf(keyId, at)
      expect(server.requests[0]?.aborted, at).toBe(false)
      expect([end?.outcome, end?.status, (end?.value ?? 0) > 0], at).toEqual(['client_gone', 499, true])
    })
  })

  test('a client that disconnects during a stream pays for the output', async () => {
    await each(async (path, model, server, stream, at) => {
      if (!stream) return
      const { key, keyId } = await app.newKey({ budgetInr: 5 })
      server.script({ holdAfterChunks: 3, chunks: ['x'.repeat(300), 'y'.repeat(300), 'z'.repeat(300), 'never'] })
      const leaving = new AbortController()
      const reply = await send(path, model, stream, key, leaving.signal)
      const reader = reply.body?.getReader()
      let heard = ''
      while (!heard.includes('zzz')) heard += Buffer.from((await reader?.read())?.value ?? []).toString()
      leaving.abort()
      await until(() => app.gateway.app.inflight.size === 2, `${at} is followed`)
      // For a model with hidden thinking, the stream is read on, and the usage at its end counts.
      server.release()
      const end = await endOf(keyId, at)
      expect([end?.outcome, end?.status, (end?.value ?? 0) > 0, server.requests[0]?.aborted], at).toEqual(['client_gone', 200, true, false])
    })
  })

  test('a key that is revoked during a call ends the call', async () => {
    await each(async (path, model, server, stream, at) => {
      const { key, keyId } = await app.newKey({ budgetInr: 5 })
      server.script(stream ? { holdAfterChunks: 2 } : { hang: true })
      const call = send(path, model, stream, key).then(async reply => ({ status: reply.status, text: await reply.text().catch(() => '') }))
      await server.arrived(1)
      if (stream) await until(async () => (await app.gateway.app.limits.budgets.get(app.orgId, 'key', String(keyId)))?.heldUinr !== 0n, 'the hold')
      expect((await app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie })).status, at).toBeLessThan(300)
      const { status, text } = await call
      expect(status === 401 || text.includes('revoked'), `${at} ${status} ${text.slice(-200)}`).toBe(true)
      // The client already has the error. The provider's stream is read on for the usage at its end.
      server.release()
      expect((await endOf(keyId, at))?.outcome, at).toBe('cut')
    })
  })

  test('when a provider breaks off, the call costs nothing before the first byte, and the output so far after it', async () => {
    await each(async (path, model, server, stream, at) => {
      const { key, keyId } = await app.newKey({ budgetInr: 5 })
      server.script(stream ? { breakAfterChunks: 3 } : { reset: true })
      await (await send(path, model, stream, key)).text()
      const end = await endOf(keyId, at)
      expect([end?.outcome, (end?.value ?? 0) > 0], at).toEqual(stream ? ['upstream_broke', true] : ['failed', false])
    })
  })

  test('pictures whose client disconnects are charged once, and a panel with an idempotency key is not repeated', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 50 })
    const leaving = new AbortController()
    let asked = 0
    let draw = (): void => {}
    const drawn = new Promise<undefined>(resolve => {
      draw = () => resolve(undefined)
    })
    providers.answer(() => {
      if (++asked === members.length) leaving.abort()
      return asked === 1 ? undefined : drawn
    })
    const ask = (signal: AbortSignal | null) =>
      fetch(`${app.baseUrl}/v1/images/generations`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': 'left-1' },
        body: JSON.stringify({ model: 'image-sangam', prompt: 'a boat' }),
        signal,
      })
    await ask(leaving.signal).catch(() => null)
    draw()
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.db.many(rowsOfKey, keyId)).length === members.length
    }, 'all pictures are settled')
    const charged = (await app.db.many(rowsOfKey, keyId)).reduce((sum, { value }) => sum + value, 0)
    expect(charged).toBe(9_000_000)
    providers.answer(null)
    const again = await ask(null)
    expect([again.status, JSON.parse(await again.text()).error.code]).toEqual([409, 'idempotency_replayed'])
    expect(await app.gateway.app.limits.budgets.get(app.orgId, 'key', String(keyId))).toMatchObject({ spentUinr: 9_000_000n, heldUinr: 0n })
    expect(asked).toBe(members.length)
  })
})
