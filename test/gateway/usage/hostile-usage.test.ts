/** A call with figures or names that the database cannot store must not block the usage records of other calls. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const messages = [{ role: 'user', content: 'Hello there' }]

describe('usage that no database accepts', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  const chat = (body: object) => app.call('POST', '/v1/chat/completions', { messages, ...body })
  /** Flushes all usage so far to the database, and reads it. */
  const usage = async () => {
    await app.gateway.app.limits.flushNow()
    const reply = await app.call('GET', '/v1/usage')
    expect(reply.status).toBe(200)
    return reply.json.totals
  }

  test('model ids that no provider can have are refused, and no provider is dialed', async () => {
    const long = `alpha/${randomBytes(3000).toString('hex')}`
    for (const model of ['alpha/a\u0000b', 'alpha/line\nbreak', 'alpha/ ', 'alpha/\ud800', long])
      expect((await chat({ model, upstream_key: 'sk-somebody-0001' })).json.error?.code, JSON.stringify(model).slice(0, 40)).toBe('model_not_found')
    expect(app.alpha.requests).toEqual([])
    expect((await chat({ model: 'alpha/deep/er-model:7b', upstream_key: 'sk-somebody-0001' })).status).toBe(200)
    expect((await usage()).requests).toBe(1)
  })

  test('impossible usage figures are ignored, and the gateway estimates the tokens', async () => {
    for (const stream of [false, true])
      for (const prompt_tokens of [1e308, 1e19, 2 ** 53]) {
        const before = await usage()
        app.alpha.script({ usage: { prompt_tokens, completion_tokens: 5, total_tokens: 5 } })
        // app.call would refuse this reply: the provider's figures reach the client unchanged, and no schema allows them.
        const body = JSON.stringify({ model: 'alpha-only', stream, messages })
        const reply = await fetch(`${app.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${app.key}` }, body })
        expect([reply.status, (await reply.text()).length > 0]).toEqual([200, true])
        const after = await usage()
        expect(after.requests).toBe(before.requests + 1)
        expect(after.prompt_tokens - before.prompt_tokens).toBeLessThan(100)
      }
  })

  test('a call for more tokens than can be priced is refused as too expensive', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 5 })
    const cookie = await app.signIn()
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 5, strict: true }, { cookie })
    const reply = await app.call('POST', '/v1/chat/completions', { messages, model: 'test-model', max_tokens: Number.MAX_SAFE_INTEGER, n: 128 }, { token: key })
    expect([reply.status, reply.json.error.code]).toEqual([429, 'budget_exceeded'])
  })

  test('an event from an older journal is stored with the fields that fit', async () => {
    const atMs = Date.now()
    const event = {
      id: systemIds.uuidv7(atMs),
      atMs,
      requestId: 'req_1',
      orgId: app.orgId,
      userId: null,
      keyId: app.keyId,
      workspaceId: null,
      agentId: null,
      agentLabel: null,
      kind: 'chat',
      model: `alpha/\u0000${'x'.repeat(20_000)}`,
      provider: 'alpha',
      residency: 'global',
      streamed: false,
      byok: true,
      status: 200,
      outcome: 'ok',
      promptTokens: 1e308,
      completionTokens: 1,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      images: 0,
      audioSeconds: 0,
      characters: 0,
      reasoningTokens: 0,
      estimated: false,
      valueUinr: 0n,
      costUinr: 0n,
      latencyMs: 1,
      firstByteMs: null,
    } as const
    // The cut splits a surrogate pair.
    const cut = { ...event, id: systemIds.uuidv7(atMs), model: `${'x'.repeat(299)}\u{1f600}` }
    const stored = await app.db.tx(async tx => {
      const ids = await insertUsageEvents(tx, [event, cut])
      await keepsRollups(0)(tx, [event, cut])
      return ids
    })
    expect(stored).toEqual([event.id, cut.id])
  })
})
