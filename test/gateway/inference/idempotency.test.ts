import { createHash } from 'node:crypto'
import fc from 'fast-check'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { waitersMax } from '../../../src/gateway/inference/idempotency/key-waits.ts'
import type { Db } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const dayMs = 24 * 3600_000
const hello = [{ role: 'user', content: 'The parcel is under the third stair' }]

describe('Idempotency-Key', () => {
  let app: TestApp
  const clock = movableClock()
  let number = 0
  let key = ''
  beforeAll(async () => {
    app = await startApp({ clock, env: { CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    key = `order-${number++}`
  })

  const chat = (body: object = {}, { as = key, token }: { as?: string; token?: string } = {}) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: hello, ...body },
      { headers: { 'idempotency-key': as }, ...(token ? { token } : {}) },
    )
  const requests = async (): Promise<number> => (await app.call('GET', '/v1/usage')).json.totals.requests
  const flushed = () => app.gateway.app.limits.flushNow()

  test('IDEM-01 a replay of a finished call is 409 idempotency_replayed with the usage, without a provider call, a charge or advice to retry', async () => {
    const before = await requests()
    const first = await chat()
    expect(first.status).toBe(200)
    const replay = await chat()
    expect([replay.status, replay.json.error.code, replay.headers.get('x-should-retry')]).toEqual([409, 'idempotency_replayed', 'false'])
    expect(replay.json.usage).toMatchObject({
      prompt_tokens: first.json.usage.prompt_tokens,
      completion_tokens: first.json.usage.completion_tokens,
      provider: 'alpha',
      model: 'alpha-only',
      outcome: 'ok',
      request_id: first.headers.get('x-request-id'),
    })
    expect(replay.json.usage.value_inr).toBeGreaterThan(0)
    expect(app.alpha.requests).toHaveLength(1)
    expect(await requests()).toBe(before + 1)
  })

  test('IDEM-01 a streamed call is also charged once, and the same key with another body or endpoint is 422 idempotency_mismatch', async () => {
    expect((await chat({ stream: true })).text).toContain('[DONE]')
    expect((await chat({ stream: true })).json.error.code).toBe('idempotency_replayed')
    for (const reply of [
      await chat({ stream: true, temperature: 0 }),
      await app.call('POST', '/v1/embeddings', { model: 'alpha-only', messages: hello, stream: true }, { headers: { 'idempotency-key': key } }),
    ])
      expect([reply.status, reply.json.error.code, reply.headers.get('x-should-retry')]).toEqual([422, 'idempotency_mismatch', 'false'])
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('IDEM-01 a second call waits for the first, and gets 409 idempotency_in_progress if that takes too long', async () => {
    app.alpha.hold()
    const first = chat()
    await app.alpha.arrived(1)
    const second = chat()
    let over = false
    void second.then(() => {
      over = true
    })
    // The clock of the gateway does not move, so the test moves it until the wait ends.
    await until(async () => {
      clock.advance(1000)
      return over
    })
    const waited = await second
    expect([waited.status, waited.json.error.code, waited.headers.get('x-should-retry')]).toEqual([409, 'idempotency_in_progress', 'true'])
    const third = chat()
    app.alpha.release()
    expect((await first).status).toBe(200)
    await flushed()
    await until(async () => {
      clock.advance(60)
      return (await Promise.race([third, Promise.resolve(null)])) !== null
    })
    expect((await third).json.error.code).toBe('idempotency_replayed')
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('IDEM-01 a call without cost frees the idempotency key: an invalid body, a refusal, or a failure of all routes', async () => {
    expect((await chat({ messages: [] })).status).toBe(400)
    expect((await chat({ model: 'no-such-model' })).status).toBe(404)
    app.alpha.script([{ status: 400 }, { status: 500 }])
    expect((await chat()).status).toBe(400)
    await flushed()
    expect((await chat()).status).toBe(502)
    await flushed()
    expect((await chat()).status).toBe(200)
    expect(app.alpha.requests).toHaveLength(3)
    expect((await chat()).json.error.code).toBe('idempotency_replayed')
  })

  test('IDEM-01 an idempotency key is valid for 24 hours and for one sender, so another API key or agent may use the same text', async () => {
    expect((await chat()).status).toBe(200)
    const other = await app.newKey()
    expect((await chat({}, { token: other.key })).status).toBe(200)
    const agent = await app.newAgent(`courier ${number}`)
    expect((await chat({}, { token: agent.token })).status).toBe(200)
    expect((await chat({}, { token: agent.token })).json.error.code).toBe('idempotency_replayed')
    await flushed()
    clock.advance(dayMs - 20_000)
    expect((await chat()).json.error.code).toBe('idempotency_replayed')
    clock.advance(21_000)
    expect((await chat({ temperature: 1 })).status).toBe(200)
  })

  test('IDEM-01 neither the text of the body nor a plain hash of it is stored', async () => {
    await chat({ stream: true })
    await flushed()
    const dump = await app.dump()
    const body = JSON.stringify({ model: 'alpha-only', messages: hello, stream: true })
    for (const digest of ['sha256', 'sha1', 'md5', 'sha512'])
      for (const form of ['hex', 'base64'] as const) expect(dump.includes(createHash(digest).update(body).digest(form))).toBe(false)
    expect(dump).not.toContain('third stair')
    expect(dump).not.toContain(key)
  })

  test('an invalid idempotency key is refused on charging endpoints, and other endpoints ignore the header', async () => {
    for (const as of ['two words', 'x'.repeat(256), 'caf\u00e9']) expect((await chat({}, { as })).json.error?.code, as).toBe('bad_request')
    for (let again = 0; again < 2; again++)
      expect((await app.call('GET', '/v1/me/budgets', undefined, { headers: { 'idempotency-key': key } })).status).toBe(200)
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('the OpenAI SDK gets the replay error immediately and does not retry', async () => {
    const client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 3 })
    const create = () =>
      client.chat.completions.create({ model: 'alpha-only', messages: [{ role: 'user', content: 'Once' }] }, { headers: { 'idempotency-key': key } })
    expect((await create()).choices).toHaveLength(1)
    await flushed()
    await expect(create()).rejects.toMatchObject({ status: 409, code: 'idempotency_replayed' })
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('many repeated calls share one poll of the database with growing pauses, and beyond the bound of an organisation they get 409 immediately', async () => {
    const { orgId, key: token } = await app.otherOrg(`Repeating ${number}`)
    const stranger = await app.otherOrg(`Patient ${number}`)
    await app.gateway.app.orgLimits.set(orgId, { rpm: 0, running: 0 }, false)
    const asked: string[] = []
    const maybe: Db['maybe'] = app.db.maybe.bind(app.db)
    const counting: Db['maybe'] = (wanted, ...params) => {
      asked.push(wanted.name)
      return maybe(wanted, ...params)
    }
    app.alpha.hold()
    const first = chat({}, { token })
    await app.alpha.arrived(1)
    Object.assign(app.db, { maybe: counting })
    try {
      const codes: string[] = []
      const repeats = Array.from({ length: waitersMax + 8 }, async () => {
        const { json } = await chat({}, { token })
        codes.push(json.error.code)
      })
      await until(() => codes.length >= 8)
      expect(new Set(codes)).toEqual(new Set(['idempotency_in_progress']))
      // The waiting calls of one organisation do not take the places of another one.
      const others = [chat({}, { token: stranger.key }), chat({}, { token: stranger.key })]
      await app.alpha.arrived(2)
      const polls = () => asked.filter(name => name === 'once.find').length
      const before = polls()
      const beganMs = performance.now()
      await until(() => performance.now() - beganMs > 1000)
      // Two keys are polled. Without a shared poll, each of the waiting calls would ask 20 times a second.
      expect(polls() - before).toBeLessThanOrEqual(20)
      app.alpha.release()
      expect((await first).status).toBe(200)
      await flushed()
      await Promise.all(repeats)
      // On a slow machine, some calls have waited as long as they may.
      expect(codes).toHaveLength(repeats.length)
      expect(codes.filter(code => code === 'idempotency_replayed').length).toBeLessThanOrEqual(waitersMax)
      expect(new Set(codes)).toEqual(new Set(['idempotency_in_progress', 'idempotency_replayed']))
      expect((await Promise.all(others)).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    } finally {
      Object.assign(app.db, { maybe })
    }
    expect((await chat({}, { token })).json.error.code).toBe('idempotency_replayed')
  })

  test('concurrent calls with one idempotency key are made once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('ok', 'fail', 'client'), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 2, max: 8 }),
        async (ends, calls) => {
          app.alpha.reset()
          const as = `many-${number++}`
          app.alpha.script(ends.map(end => (end === 'ok' ? {} : { status: end === 'fail' ? 500 : 400 })))
          let done = false
          const all = Promise.all(Array.from({ length: calls }, () => chat({}, { as }))).finally(() => {
            done = true
          })
          await until(async () => {
            clock.advance(60)
            await flushed()
            return done
          })
          const statuses = (await all).map(reply => reply.status)
          expect(statuses.filter(status => status === 200).length).toBeLessThanOrEqual(1)
          // Every failure frees the key, so provider calls end with the first success.
          const dialed = app.alpha.requests.length
          expect(statuses.filter(status => [200, 502, 400].includes(status))).toHaveLength(dialed)
          const firstOk = ends.indexOf('ok')
          expect(dialed).toBeLessThanOrEqual(Math.max(1, firstOk === -1 ? ends.length + 1 : firstOk + 1))
        },
      ),
      { numRuns: propertyRuns(15) },
    )
  })
})
