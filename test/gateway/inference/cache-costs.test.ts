/** Exact test vectors for cached prompt tokens: the reported usage, the charge, the usage row, and the usage that the caller gets. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

interface Books {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly written: number
  readonly uinr: number
  readonly estimated: boolean
}
const lastBooks = statement<[orgId: number], Books>(
  'test.last_cache_books',
  `select prompt_tokens::int as "prompt", completion_tokens::int as "completion", cached_tokens::int as "cached", cache_write_tokens::int as "written",
     value_uinr::int as "uinr", estimated from usage_events where org_id = $1::int order by id desc limit 1`,
)

/** 1,000 prompt tokens: 100 fresh, 800 read from a cache and 100 written to one. 50 output tokens. The prices are ₹10, ₹1, ₹12 and ₹40 per million. */
const written = { prompt: 1000, completion: 50, cached: 800, written: 100, uinr: 100 * 10 + 800 * 1 + 100 * 12 + 50 * 40, estimated: false }
/** The same for a provider that does not report cache writes. Written tokens are charged as input. */
const readOnly = { prompt: 1000, completion: 50, cached: 800, written: 0, uinr: 200 * 10 + 800 * 1 + 50 * 40, estimated: false }
const openAi = { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050, prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 100 } }
const messages = { input_tokens: 100, cache_read_input_tokens: 800, cache_creation_input_tokens: 100, output_tokens: 50 }
const responses = {
  input_tokens: 1000,
  input_tokens_details: { cached_tokens: 800, cache_write_tokens: 100 },
  output_tokens: 50,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 1050,
}
const gemini = { promptTokenCount: 1000, cachedContentTokenCount: 800, candidatesTokenCount: 50, totalTokenCount: 1050 }

const hello = [{ role: 'user', content: 'hello' }]
const clients: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: hello },
  '/v1/messages': { max_tokens: 100, messages: hello },
  '/v1/responses': { input: 'hello' },
}

/** Returns the usage of a reply from the fields of its API: the whole prompt, output, cache reads, cache writes. */
function told(path: string, usage: Record<string, never>): { prompt: number; completion: number; cached: number; written: number } {
  const { input_tokens: input, output_tokens: output, prompt_tokens: prompt, completion_tokens: completion } = usage as Record<string, number>
  const details = (usage['prompt_tokens_details'] ?? usage['input_tokens_details'] ?? {}) as Record<string, number>
  if (path === '/v1/messages') {
    const { cache_read_input_tokens: cached = 0, cache_creation_input_tokens: made = 0 } = usage as Record<string, number>
    return { prompt: (input ?? 0) + cached + made, completion: output ?? 0, cached, written: made }
  }
  return {
    prompt: prompt ?? input ?? 0,
    completion: completion ?? output ?? 0,
    cached: details['cached_tokens'] ?? 0,
    written: details['cache_write_tokens'] ?? 0,
  }
}

/** Returns the last usage in a stream. */
function lastUsage(text: string): Record<string, never> {
  let last: Record<string, never> = {}
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue
    const event = JSON.parse(line.slice(6))
    last = event.usage ?? event.response?.usage ?? last
  }
  return last
}

describe('cached prompt tokens', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ dialects: true })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  const dialects = [
    { model: 'openai-model', server: () => app.alpha, usage: openAi, expected: written },
    { model: 'anthropic-model', server: () => app.others.claude, usage: messages, expected: written },
    { model: 'responses-model', server: () => app.others.resp, usage: responses, expected: written },
    { model: 'gemini-model', server: () => app.others.gem, usage: gemini, expected: readOnly },
  ]
  beforeEach(() => {
    for (const { server } of dialects) server().reset()
  })
  const books = async (): Promise<Books> => {
    await app.gateway.app.limits.flushNow()
    return app.db.one(lastBooks, app.orgId)
  }

  test('CACHE-01 cached tokens have their own prices and usage columns and are never counted twice, for every dialect and client', async () => {
    let charged = 0
    for (const [path, body] of Object.entries(clients))
      for (const { model, server, usage, expected } of dialects)
        for (const stream of [false, true]) {
          const at = `${path} ${model} ${stream ? 'stream' : 'whole'}`
          server().script({ usage })
          const reply = await app.call('POST', path, { model, stream, ...body })
          expect(reply.status, `${at} ${reply.text}`).toBe(200)
          expect(await books(), at).toEqual(expected)
          charged += expected.uinr
          const { prompt, completion, cached, written: made } = expected
          expect(told(path, stream ? lastUsage(reply.text) : reply.json.usage), at).toEqual({ prompt, completion, cached, written: made })
          if (!stream) expect(Number(reply.headers.get('x-br-cost-inr')), at).toBe(expected.uinr / 1e6)
        }
    const { totals } = (await app.call('GET', '/v1/usage')).json
    expect(totals).toMatchObject({ prompt_tokens: 24_000, cached_tokens: 19_200, cache_write_tokens: 1800, cost_uinr: charged })
    // The catalog has separate prices for both: reads cost less than input, and writes cost more.
    const models = JSON.parse(readFileSync('catalog/models.json', 'utf8')).models as { routes: Record<string, number>[] }[]
    const routes = models.flatMap(each => each.routes)
    expect(
      routes.some(route => (route['cached_input_inr_per_mtok'] ?? 0) > 0 && (route['cached_input_inr_per_mtok'] ?? 0) < (route['input_inr_per_mtok'] ?? 0)),
    ).toBe(true)
    expect(routes.some(route => (route['cache_write_inr_per_mtok'] ?? 0) > (route['input_inr_per_mtok'] ?? 0))).toBe(true)
  })

  test('tokens cached for an hour cost twice the input, and if the provider does not split cache writes, the request decides', async () => {
    const marked = (ttl: string | undefined) => ({ type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) })
    const block = (ttl: string | undefined) => [{ role: 'user', content: [{ type: 'text', text: 'hello', cache_control: marked(ttl) }] }]
    const bodies: Readonly<Record<string, (ttl: string | undefined) => object>> = {
      '/v1/messages': ttl => ({ max_tokens: 100, messages: block(ttl) }),
      '/v1/chat/completions': ttl => ({ messages: block(ttl) }),
    }
    const split = (short: number, long: number) => ({ cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long } })
    // Prices per million: ₹10 for input, ₹12 for writes for five minutes, ₹20 for writes for an hour.
    for (const [path, body] of Object.entries(bodies))
      for (const stream of [false, true])
        for (const [ttl, more, perMillion] of [
          ['1h', split(0, 100), 2000],
          ['1h', split(60, 40), 60 * 12 + 40 * 20],
          ['5m', split(100, 0), 1200],
          ['1h', {}, 2000],
          ['5m', {}, 1200],
          [undefined, {}, 1200],
        ] as const) {
          app.others.claude.script({ usage: { ...messages, ...more } })
          const reply = await app.call('POST', path, { model: 'anthropic-model', stream, ...body(ttl) })
          expect(reply.status, reply.text).toBe(200)
          expect((await books()).uinr, `${path} ${stream} ${ttl} ${JSON.stringify(more)}`).toBe(written.uinr - 100 * 12 + perMillion)
          if (!stream) expect(Number(reply.headers.get('x-br-cost-inr'))).toBe((written.uinr - 1200 + perMillion) / 1e6)
        }
    // The hold of a call that may cache for an hour uses that price.
    const { key, keyId } = await app.newKey()
    const text = 'x'.repeat(3000)
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 0.0225, strict: true }, { cookie })
    for (const [ttl, status] of [
      ['5m', 200],
      ['1h', 429],
    ] as const) {
      app.others.claude.script({ usage: { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 0 } })
      const body = { model: 'anthropic-model', max_tokens: 100, messages: [{ role: 'user', content: [{ type: 'text', text, cache_control: marked(ttl) }] }] }
      expect((await app.call('POST', '/v1/messages', body, { token: key })).status, ttl).toBe(status)
    }
  })

  test('a budget counts the same amount as the charge', async () => {
    const { key, keyId } = await app.newKey()
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 1, strict: true }, { cookie })
    app.others.claude.script({ usage: { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 1000, output_tokens: 10 } })
    await app.call('POST', '/v1/messages', { model: 'anthropic-model', max_tokens: 100, messages: hello }, { token: key })
    expect(await books()).toEqual({ prompt: 1000, completion: 10, cached: 0, written: 1000, uinr: 12_400, estimated: false })
    const budgets = (await app.call('GET', '/me/budgets', undefined, { cookie })).text
    expect(budgets).toContain('0.0124')
  })

  test('cache figures above the prompt, or invalid ones, do not change the prompt tokens', async () => {
    for (const [details, cached, made] of [
      [{ cached_tokens: 5000 }, 1000, 0],
      [{ cached_tokens: 900, cache_write_tokens: 900 }, 900, 100],
      [{ cached_tokens: -5, cache_write_tokens: 'x' }, 0, 0],
      [{ cached_tokens: null }, 0, 0],
      [[], 0, 0],
    ] as const) {
      app.alpha.script({ usage: { prompt_tokens: 1000, completion_tokens: 0, total_tokens: 1000, prompt_tokens_details: details } })
      const body = JSON.stringify({ model: 'openai-model', messages: hello })
      await (await fetch(`${app.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${app.key}` }, body })).text()
      const uinr = (1000 - cached - made) * 10 + cached + made * 12
      expect(await books(), JSON.stringify(details)).toEqual({ prompt: 1000, completion: 0, cached, written: made, uinr, estimated: false })
    }
  })

  test('cached tokens outside of the details, as Moonshot and DeepSeek report them, are charged as cached tokens, streamed or not', async () => {
    for (const [more, cached] of [
      [{ cached_tokens: 800 }, 800],
      [{ prompt_cache_hit_tokens: 800, prompt_cache_miss_tokens: 200 }, 800],
      [{ cached_tokens: 800, prompt_tokens_details: null }, 800],
      [{ cached_tokens: 800, prompt_tokens_details: { cached_tokens: 0 } }, 0],
      [{ cached_tokens: 5000 }, 1000],
    ] as const)
      for (const stream of [false, true]) {
        app.alpha.script({ usage: { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050, ...more } })
        expect((await app.call('POST', '/v1/chat/completions', { model: 'openai-model', stream, messages: hello })).status).toBe(200)
        const uinr = (1000 - cached) * 10 + cached + 50 * 40
        expect(await books(), `${JSON.stringify(more)} ${stream}`).toEqual({ prompt: 1000, completion: 50, cached, written: 0, uinr, estimated: false })
      }
  })
})
