import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { streamApis } from './stream-clients.ts'

describe('a cut stream in real clients', () => {
  let app: TestApp
  let servers: readonly UpstreamServer[]
  let owner: string
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '1000' } })
    servers = [app.alpha, app.others.claude, app.others.gem, app.others.resp]
    owner = await app.signIn()
  })
  afterAll(() => app.stop())

  interface Cut {
    readonly key: string
    readonly script: Parameters<UpstreamServer['script']>[0]
    /** The text that the client must receive. */
    readonly says: RegExp
    /** Called when the client has read some text. */
    cut(): Promise<unknown>
  }
  const held = { holdAfterChunks: 3, chunks: Array.from({ length: 20 }, (_, index) => `word${index} `) }
  const cuts: Readonly<Record<string, () => Promise<Cut>>> = {
    'a budget that is spent': async () => ({
      key: (await app.newKey({ budgetInr: 0.03 })).key,
      script: { chunks: Array.from({ length: 400 }, () => 'word '.repeat(20)) },
      says: /budget/i,
      cut: async () => undefined,
    }),
    'an agent that is revoked': async () => {
      const { id, token } = await app.newAgent(`cut ${Math.random()}`)
      return { key: token, script: held, says: /revoked/i, cut: () => app.call('POST', `/v1/me/agents/${id}/revoke`, {}) }
    },
    'a key that is revoked': async () => {
      const { key, keyId } = await app.newKey()
      return { key, script: held, says: /revoked/i, cut: () => app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie: owner }) }
    },
    'a provider that breaks off': async () => ({
      key: (await app.newKey()).key,
      script: { breakAfterChunks: 3, chunks: held.chunks },
      says: /provider (broke off|ended)/i,
      cut: async () => undefined,
    }),
  }
  const totals = async () => {
    await app.gateway.app.limits.flushNow()
    const { requests, cost_uinr } = (await app.call('GET', '/v1/usage')).json.totals
    return { requests: Number(requests), costUinr: Number(cost_uinr) }
  }

  for (const { api, clients, ...models } of streamApis) {
    for (const [why, make] of Object.entries(cuts)) {
      test(`${api}: the client shows ${why}, does not retry, and nothing is charged after the end`, async () => {
        for (const [name, client] of Object.entries(clients)) {
          for (const [way, model] of Object.entries(models)) {
            const at = `${name}, ${way}`
            const { key, script, says, cut } = await make()
            for (const server of servers) {
              server.reset()
              server.script([script].flat() as never)
            }
            const before = await totals()
            let text = ''
            const call = client(app.baseUrl, key, model, part => {
              text += part
            }).catch((error: unknown) => error)
            await until(() => text !== '')
            await cut()
            const shown = await call
            expect(shown, at).not.toBeNull()
            expect(wordsOf(shown), at).toMatch(says)
            // The client gets the error immediately. For a model with hidden thinking, the gateway reads the provider's stream to its end for the usage,
            // which is charged once.
            for (const server of servers) server.release()
            let after = before
            await until(async () => {
              after = await totals()
              return after.requests > before.requests
            })
            expect(after.requests - before.requests, at).toBe(1)
            expect(after.costUinr, at).toBeGreaterThan(before.costUinr)
            expect(
              servers.flatMap(server => server.requests),
              at,
            ).toHaveLength(1)
            expect(await totals(), at).toEqual(after)
          }
        }
      })
    }
  }
})

describe('the bytes of a cut stream', () => {
  const calls = [
    { api: 'chat', path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'Hi' }] }, relayed: 'alpha-only', translated: 'anthropic-model' },
    {
      api: 'messages',
      path: '/v1/messages',
      body: { max_tokens: 500, messages: [{ role: 'user', content: 'Hi' }] },
      relayed: 'anthropic-model',
      translated: 'alpha-only',
    },
    { api: 'responses', path: '/v1/responses', body: { input: 'Hi' }, relayed: 'responses-model', translated: 'alpha-only' },
  ] as const

  interface Frame {
    readonly type: string
    readonly sequence_number: number
    readonly error: unknown
    readonly usage: Readonly<Record<string, number>>
    readonly response: { readonly error: unknown; readonly status: string; readonly usage: { readonly input_tokens: number } }
  }

  /** Returns the content of the last events. */
  function lastOf(api: (typeof calls)[number]['api'], text: string): { readonly error: unknown; readonly more: unknown } {
    const events = text.split('\n\n').filter(block => block.includes('data:'))
    const datas = events.map(block => block.slice(block.indexOf('data: ') + 6))
    const json = (data: string | undefined): Frame => JSON.parse(data ?? 'null') as Frame
    switch (api) {
      case 'chat': {
        expect(datas.at(-1)).toBe('[DONE]')
        const { error, usage } = json(datas.at(-2))
        expect(text).not.toContain('"finish_reason":"')
        return { error, more: Object.keys(usage) }
      }
      case 'messages': {
        expect(events.at(-1)).toMatch(/^event: error\n/)
        expect(text).not.toContain('message_stop')
        return { error: json(datas.at(-1)).error, more: json(datas.at(-1)).type }
      }
      case 'responses': {
        expect(events.at(-1)).toMatch(/^event: response.failed\n/)
        const numbers = datas.map(data => json(data).sequence_number)
        expect(numbers).toEqual(numbers.map((_, index) => index))
        const { error, status, usage } = json(datas.at(-1)).response
        return { error, more: [status, usage.input_tokens > 0] }
      }
    }
  }

  test('each format has its own error frame, which gives the reason and says that a retry is useless', { timeout: 60_000 }, async () => {
    const app = await startApp({ dialects: true, env: { DRAIN_MS: '0' } })
    const servers = [app.alpha, app.others.claude, app.others.resp]
    const owner = await app.signIn()
    const play = (script: Parameters<UpstreamServer['script']>[0]): void => {
      for (const server of servers) {
        server.reset()
        server.script(script)
      }
    }
    const open = async (path: string, body: object, key: string): Promise<{ text(): string; done: Promise<string> }> => {
      const response = await fetch(app.baseUrl + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, stream: true }),
      })
      let text = ''
      const done = (async () => {
        for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(part).toString()
        return text
      })()
      await until(() => text.includes('from') || text.includes('word'))
      return { text: () => text, done }
    }
    for (const { api, path, body, ...models } of calls) {
      for (const [way, model] of Object.entries(models)) {
        const { id, token } = await app.newAgent(`frames ${api} ${way}`)
        play(() => ({ holdAfterChunks: 3 }))
        const asAgent = await open(path, { ...body, model }, token)
        await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
        const revoked = lastOf(api, await asAgent.done)
        const { key, keyId } = await app.newKey()
        const asKey = await open(path, { ...body, model }, key)
        await app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie: owner })
        const unkeyed = lastOf(api, await asKey.done)
        play({ chunks: Array.from({ length: 400 }, () => 'word '.repeat(20)) })
        const poor = { ...body, model, [api === 'responses' ? 'max_output_tokens' : 'max_tokens']: 100_000 }
        const spent = lastOf(api, await (await open(path, poor, (await app.newKey({ budgetInr: 0.03 })).key)).done)
        if (api === 'chat') {
          expect(revoked, way).toMatchObject({ error: { type: 'authentication_error', code: 'agent_revoked', param: null } })
          expect(unkeyed, way).toMatchObject({ error: { type: 'authentication_error', code: 'invalid_api_key' } })
          expect(spent, way).toMatchObject({ error: { type: 'billing_error', code: 'budget_exceeded' } })
          expect(revoked.more).toEqual(['prompt_tokens', 'completion_tokens', 'total_tokens'])
        } else if (api === 'messages') {
          expect(revoked, way).toMatchObject({ error: { type: 'authentication_error', code: 'agent_revoked' }, more: 'error' })
          expect(unkeyed, way).toMatchObject({ error: { type: 'authentication_error', code: 'invalid_api_key' } })
          expect(spent, way).toMatchObject({ error: { type: 'billing_error', code: 'budget_exceeded' } })
        } else {
          expect(revoked, way).toMatchObject({ error: { code: 'invalid_prompt', message: expect.stringMatching(/^agent_revoked: /) }, more: ['failed', true] })
          expect(unkeyed, way).toMatchObject({ error: { code: 'invalid_prompt', message: expect.stringMatching(/^invalid_api_key: /) } })
          expect(spent, way).toMatchObject({ error: { code: 'insufficient_quota', message: expect.stringMatching(/^budget_exceeded: /) } })
        }
      }
    }
    play(() => ({ holdAfterChunks: 3 }))
    const atTheEnd = await Promise.all(
      calls.flatMap(({ api, path, body, relayed, translated }) =>
        [relayed, translated].map(async model => ({ api, done: (await open(path, { ...body, model }, app.key)).done })),
      ),
    )
    await app.stop()
    for (const { api, done } of atTheEnd) {
      const { error } = lastOf(api, await done)
      expect(error, api).toMatchObject(
        api === 'responses'
          ? { code: 'server_error', message: expect.stringMatching(/^database_unavailable: .*shutting down/) }
          : { type: 'api_error', message: expect.stringContaining('shutting down') },
      )
    }
  })
})

/** Returns all texts of an error, in any fields of its library. */
function wordsOf(error: unknown, depth = 0): string {
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null || depth > 4) return ''
  const own = error instanceof Error ? [error.message, error.cause] : []
  return [...own, ...Object.values(error)].map(value => wordsOf(value, depth + 1)).join(' ')
}
