import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DatabaseUnavailableError, type Db } from '../../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../../harness/app.ts'
import { movableClock } from '../../../harness/clock.ts'
import { until } from '../../../harness/until.ts'

/** 55 s before a minute ends. */
const start = Date.parse('2026-11-25T06:30:05Z')
const minuteMs = 60_000
const hello = [{ role: 'user', content: 'Hello there' }]
const codeOf = ({ status, json }: TestReply) => [status, json?.error?.code]
const tokenHeaders = (headers: Headers) =>
  [...headers].filter(([name]) => /ratelimit.*tokens/.test(name)).map(([name, value]) => `${name}: ${value.replace(/^[1-5]?\ds$/, '(seconds)')}`)

/** Makes every statement fail as without a connection. Returns the function that ends it. */
function withoutDatabase(db: Db): () => void {
  const put = (name: 'tx' | 'many' | 'one' | 'maybe' | 'exec', value: unknown): boolean =>
    Reflect.defineProperty(db, name, { configurable: true, writable: true, value })
  const { tx, many, one, maybe, exec } = db
  const real = { tx, many, one, maybe, exec }
  const names = ['tx', 'many', 'one', 'maybe', 'exec'] as const
  for (const name of names) put(name, () => Promise.reject(new DatabaseUnavailableError('away')))
  return () => {
    for (const name of names) put(name, real[name])
  }
}

describe('tokens a minute over HTTP', () => {
  const clock = movableClock(start)
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ clock, env: { RATELIMIT_FIELDS: 'on' } })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(start)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const limited = async (tpm_limit: number): Promise<{ key: string; keyId: number }> => {
    const made = await app.newKey()
    expect((await app.call('PATCH', `/me/keys/${made.keyId}`, { tpm_limit }, { cookie })).json.key.tpm_limit).toBe(tpm_limit)
    return made
  }
  const uses = (promptTokens: number, completionTokens: number, cached = 0) =>
    app.alpha.script(() => ({
      usage: {
        prompt_tokens: promptTokens,
        completion_tokens: completionTokens,
        total_tokens: promptTokens + completionTokens,
        prompt_tokens_details: { cached_tokens: cached },
      },
    }))
  const chat = (token: string, body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, max_tokens: 300, ...body }, { token })

  test('a call that does not fit waits for the next minute, holds nothing in budgets, and is not dialed', async () => {
    const { key, keyId } = await limited(1000)
    await app.setBudget('key', keyId, 10)
    uses(20, 280)
    for (let i = 0; i < 3; i++) expect((await chat(key)).status, String(i)).toBe(200)
    const dialed = app.alpha.requests.length
    const refused = await chat(key)
    expect(codeOf(refused)).toEqual([429, 'rate_limit_exceeded'])
    expect(refused.json).toMatchObject({ scope: 'key', limit: 1000, limit_name: 'tpm_limit', resets_at: '2026-11-25T06:31:00.000Z' })
    expect(refused.json.error.message).toContain('1000 tokens a minute')
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(55)
    expect(app.alpha.requests.length).toBe(dialed)
    const { budgets } = (await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json
    expect(budgets).toContainEqual(expect.objectContaining({ scope: 'key', held_inr: 0 }))
    // A shorter answer still fits.
    expect((await chat(key, { max_tokens: 50 })).status).toBe(200)
    clock.moveTo(start + minuteMs)
    expect((await chat(key)).status).toBe(200)
  })

  test('a small limit serves its first call, a prompt above it is 403, and what came from a cache does not count', async () => {
    const { key } = await limited(100)
    uses(20, 30)
    expect((await chat(key, { max_tokens: undefined })).status).toBe(200)
    const dialed = app.alpha.requests.length
    const impossible = await chat(key, { messages: [{ role: 'user', content: 'word '.repeat(500) }] })
    expect(codeOf(impossible)).toEqual([403, 'call_cap_exceeded'])
    expect(impossible.json).toMatchObject({ scope: 'key', tpm_limit: 100 })
    expect(app.alpha.requests.length).toBe(dialed)
    const cached = await limited(1000)
    uses(900, 10, 890)
    for (let i = 0; i < 5; i++) expect((await chat(cached.key)).status, String(i)).toBe(200)
  })

  test('an agent has a limit of its own beside that of its key, and only people who answer for it raise it', async () => {
    const agent = await app.newAgent('of tokens')
    const patch = (tpm_limit: unknown, token?: string) => app.call('PATCH', `/v1/me/agents/${agent.id}`, { tpm_limit }, token === undefined ? {} : { token })
    for (const wrong of [0, -1, 1.5, '5', 2 ** 31]) expect(codeOf(await patch(wrong)), String(wrong)).toEqual([400, 'bad_request'])
    expect((await patch(350)).json.tpm_limit).toBe(350)
    expect(codeOf(await patch(100, agent.token))).toEqual([403, 'forbidden'])
    expect(codeOf(await patch(100, (await app.otherOrg('Other Tokens')).key))).toEqual([404, 'not_found'])
    uses(20, 280)
    expect((await chat(agent.token)).status).toBe(200)
    const refused = await chat(agent.token)
    expect([...codeOf(refused), refused.json.scope]).toEqual([429, 'rate_limit_exceeded', 'agent'])
    // The key acts in the name of the agent.
    const named = await app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: hello, max_tokens: 300 },
      { headers: { 'x-br-agent-id': 'of tokens' } },
    )
    expect(codeOf(named)).toEqual([429, 'rate_limit_exceeded'])
    expect((await chat(app.key)).status).toBe(200)
    expect((await patch(null)).json.tpm_limit).toBeNull()
    expect((await chat(agent.token)).status).toBe(200)
  })

  test('every reply shows the tokens that are left, in the names of its client, and none without a limit', async () => {
    const { key } = await limited(1000)
    uses(20, 80)
    expect(tokenHeaders((await chat(app.key)).headers)).toEqual([])
    const first = await chat(key)
    expect(first.headers.get('x-ratelimit-limit-tokens')).toBe('1000')
    // The head of a whole reply is written after the call has settled.
    expect(tokenHeaders(first.headers)).toEqual(['x-ratelimit-limit-tokens: 1000', 'x-ratelimit-remaining-tokens: 900', 'x-ratelimit-reset-tokens: (seconds)'])
    expect(first.headers.get('ratelimit')).toBeNull()
    expect(first.headers.get('x-ratelimit-limit-requests')).toBeNull()
    const bad = await chat(key, { max_tokens: -1 })
    expect(tokenHeaders(bad.headers)).toEqual(['x-ratelimit-limit-tokens: 1000', 'x-ratelimit-remaining-tokens: 900', 'x-ratelimit-reset-tokens: (seconds)'])
    const message = await app.call('POST', '/v1/messages', { model: 'alpha-only', messages: hello, max_tokens: 300 }, { token: key })
    expect(message.status).toBe(200)
    expect(tokenHeaders(message.headers)).toEqual([
      'anthropic-ratelimit-tokens-limit: 1000',
      'anthropic-ratelimit-tokens-remaining: 800',
      'anthropic-ratelimit-tokens-reset: 2026-11-25T06:31:00Z',
    ])
    // A stream shows what its first hold leaves.
    const stream = await chat(key, { stream: true })
    expect(stream.status).toBe(200)
    expect(Number(stream.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(800)
    const refused = await chat(key, { max_tokens: 900 })
    expect(codeOf(refused)).toEqual([429, 'rate_limit_exceeded'])
    expect(tokenHeaders(refused.headers)).toEqual(['x-ratelimit-limit-tokens: 1000', 'x-ratelimit-remaining-tokens: 0', 'x-ratelimit-reset-tokens: (seconds)'])
    clock.moveTo(start + minuteMs)
    expect((await chat(key)).headers.get('x-ratelimit-remaining-tokens')).toBe('900')
  })

  test('TPM-02 a stream over three minutes is charged to each of them as it runs, also above the limit, and is never cut; while the database is away, the process serves its share of the limit once', async () => {
    const { key } = await limited(1200)
    const part = 'word '.repeat(1500)
    app.alpha.script([{ chunks: [part, part, part], holdAfterChunks: 1, usage: { prompt_tokens: 20, completion_tokens: 6000, total_tokens: 6020 } }])
    const running = chat(key, { stream: true, max_tokens: undefined })
    await app.alpha.arrived(1)
    const refusedIn = async (): Promise<void> => {
      await until(async () => codeOf(await chat(key))[0] === 429, 'the stream has used up the minute')
    }
    await refusedIn()
    clock.moveTo(start + minuteMs)
    app.alpha.release()
    const reply = await running
    expect(reply.text).toContain('[DONE]')
    expect(reply.text).not.toContain('"error"')
    await refusedIn()
    clock.moveTo(start + 2 * minuteMs)
    uses(20, 280)
    expect((await chat(key)).status).toBe(200)

    // The new minute begins without a database. This process is the only one, so its share is the whole limit.
    const restore = withoutDatabase(app.db)
    try {
      clock.moveTo(start + 3 * minuteMs)
      for (let i = 0; i < 3; i++) expect((await chat(key)).status, String(i)).toBe(200)
      const unavailable = await chat(key, { max_tokens: 1100 })
      expect(codeOf(unavailable)).toEqual([503, 'database_unavailable'])
    } finally {
      restore()
    }
    clock.moveTo(start + 4 * minuteMs)
    await until(async () => (await chat(key)).status === 200, 'the database serves the next minute')
  })
})
