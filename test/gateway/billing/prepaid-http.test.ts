import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

/** Keys of a payment provider that is never called here. They switch billing on. */
const billingOn = { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' }

const ledgerOf = statement<[orgId: number], { kind: string; amountUinr: bigint; eventId: string | null }>(
  'test.prepaid_ledger',
  'select kind, amount_uinr as "amountUinr", event_id as "eventId" from ledger where org_id = $1::int order by id',
)
const eventsOf = statement<[orgId: number], { costUinr: bigint; valueUinr: bigint }>(
  'test.prepaid_events',
  'select cost_uinr as "costUinr", value_uinr as "valueUinr" from usage_events where org_id = $1::int order by id',
)

const tiersOf = statement<[orgId: number], { tier: string; rpm: number; daily: number }>(
  'test.tiers_of',
  'select distinct tier as "tier", rpm_limit as "rpm", daily_limit as "daily" from api_keys where org_id = $1::int',
)

/** A new organisation on the gateway. */
interface Org {
  readonly orgId: number
  readonly userId: number
  readonly key: string
}

const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 }
/** The cost of a call on alpha with that usage: 100 × ₹10 and 50 × ₹40 per million tokens. */
const costUinr = 3000n
const hello = [{ role: 'user', content: 'hello' }]

/**
 * Adds three models: one whose output tokens cost half a micro-rupee each, one that makes images on the caller's key, and one whose provider counts
 * tokens.
 */
function withMore(file: ReturnType<typeof defaultOperatorFile>, counting: string) {
  const facts = { provider: 'alpha', source: 'test', as_of: '2026-01-01' }
  const half = { ...facts, upstream_model: 'half', input_inr_per_mtok: 0, output_inr_per_mtok: 0.5 }
  return {
    ...file,
    providers: [...file.providers, { id: 'claude', base_url: counting, dialect: 'anthropic', residency: 'global', auth: 'x-api-key' }],
    models: [
      ...file.models,
      { id: 'counted', kind: 'chat', context_length: 1000, routes: [{ ...half, provider: 'claude', upstream_model: 'counted' }] },
      { id: 'half', kind: 'chat', context_length: 1000, routes: [half] },
      {
        id: 'eye',
        kind: 'chat',
        context_length: 100_000,
        modalities: ['text', 'image'],
        routes: [{ ...facts, upstream_model: 'eye', input_inr_per_mtok: 10, output_inr_per_mtok: 0 }],
      },
      { id: 'brush', kind: 'image', inr_per_image: 2, edits: false, routes: [{ ...facts, upstream_model: 'brush', byok_only: true }] },
    ],
  }
}

function helpersOf(app: TestApp) {
  let named = 0
  return {
    newOrg: (): Promise<Org> => app.otherOrg(`Prepaid ${++named}`),
    credit: ({ orgId }: Org, inr: number, ref = `grant ${++named}`) =>
      app.gateway.app.operator.credits.give({ orgId, reason: inr > 0 ? 'grant' : 'correction', amountUinr: uinrFromInr(inr), ref }),
    balance: async ({ orgId }: Org): Promise<bigint> => (await app.gateway.app.operator.credits.show(orgId, 1)).balanceUinr,
    chat: (token: string, body: object = {}) =>
      app.call('POST', '/v1/chat/completions', { model: 'alpha-only', max_tokens: 50, messages: hello, ...body }, { token }),
  }
}

describe('prepaid credit', () => {
  let app: TestApp
  let on: ReturnType<typeof helpersOf>
  beforeAll(async () => {
    app = await startApp({ env: billingOn, operatorFile: urls => withMore(defaultOperatorFile(urls), urls.beta) })
    on = helpersOf(app)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const server of [app.alpha, app.beta, app.indus]) {
      server.reset()
      server.script(() => ({ usage }))
    }
  })

  test('BILL-20 a platform route on a zero or negative balance is 402 insufficient_credits for a standard key, and no provider is called', async () => {
    const org = await on.newOrg()
    await on.credit(org, 0.005)
    expect((await on.chat(org.key)).status).toBe(200)
    // ₹0.002 are left. That does not pay for a call, but it is more than zero, so one more call is served.
    expect((await on.chat(org.key)).status).toBe(200)
    expect(await on.balance(org)).toBe(-1000n)
    const refused = await on.chat(org.key)
    expect([refused.status, refused.json.error.code, refused.json.error.type]).toEqual([402, 'insufficient_credits', 'billing_error'])
    expect(refused.json.balance_inr).toBe(-0.001)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('retry-after')).toBeNull()
    // A balance of exactly zero is refused too.
    await on.credit(org, 0.001)
    expect(await on.balance(org)).toBe(0n)
    expect((await on.chat(org.key)).status).toBe(402)
    expect(app.alpha.requests).toHaveLength(2)
    await on.credit(org, 1)
    expect((await on.chat(org.key)).status).toBe(200)
  })

  test('while a call with an image runs, it holds the price of the most tokens that its provider may count for the image', async () => {
    const org = await on.newOrg()
    // The estimated price of the image is ₹0.015, and the highest possible price is ₹0.16.
    await on.credit(org, 0.05)
    const look = () =>
      on.chat(org.key, {
        model: 'eye',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] }],
      })
    app.alpha.script([{ hold: true, usage }])
    const first = look()
    await app.alpha.arrived(1)
    expect((await look()).json.error.code).toBe('insufficient_credits')
    app.alpha.release()
    expect((await first).status).toBe(200)
    expect(app.alpha.requests).toHaveLength(1)
  })

  test.each([
    ['POST /v1/messages', '/v1/messages', { model: 'alpha-only', max_tokens: 10, messages: hello }],
    ['POST /v1/responses', '/v1/responses', { model: 'alpha-only', input: 'hello' }],
    ['POST /v1/embeddings', '/v1/embeddings', { model: 'test-embed', input: ['hello'] }],
  ])('%s without credit is refused in the same way, with a stream or without', async (_, path, body) => {
    const org = await on.newOrg()
    await on.credit(org, 1)
    await on.credit(org, -1)
    for (const stream of path.endsWith('embeddings') ? [undefined] : [false, true]) {
      const refused = await app.call('POST', path, { ...body, ...(stream === undefined ? {} : { stream }) }, { token: org.key })
      expect([refused.status, refused.json.error.code]).toEqual([402, 'insufficient_credits'])
    }
  })

  test('BILL-21 every credit and debit is one row of the ledger, and the balance is their sum', async () => {
    const org = await on.newOrg()
    await on.credit(org, 10)
    await on.credit(org, -0.5)
    for (let i = 0; i < 5; i++) expect((await on.chat(org.key)).status).toBe(200)
    expect((await on.chat(org.key, { stream: true })).status).toBe(200)
    app.alpha.reset()
    app.alpha.script({ status: 500 })
    expect((await on.chat(org.key)).status).toBe(502)
    const balance = await on.balance(org)
    const rows = await app.db.many(ledgerOf, org.orgId)
    expect(rows.map(row => row.kind)).toEqual(['credit', 'adjust', ...Array(6).fill('debit')])
    expect(rows.reduce((sum, row) => sum + row.amountUinr, 0n)).toBe(balance)
    expect(balance).toBe(9_500_000n - 6n * costUinr)
    expect(new Set(rows.flatMap(row => row.eventId ?? [])).size).toBe(6)
  })

  test('BILL-22 a debit is the tokens at the price of the route that served, in whole micro-rupees, rounded half up once per call', async () => {
    const org = await on.newOrg()
    await on.credit(org, 10)
    const cases: readonly [string, Record<string, number>, bigint][] = [
      // 1 × ₹10 + 1 × ₹40 per million tokens.
      ['alpha-only', { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }, 50n],
      ['alpha-only', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, 0n],
      ['test-model', { prompt_tokens: 123, completion_tokens: 45, total_tokens: 168 }, 123n * 10n + 45n * 40n],
      // At half a micro-rupee per token, 0.5 rounds to 1, and 1.5 rounds to 2. Rounding each token would give 3.
      ['half', { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }, 1n],
      ['half', { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }, 1n],
      ['half', { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }, 2n],
    ]
    for (const [model, said, debit] of cases) {
      app.alpha.reset()
      app.alpha.script({ usage: said } as never)
      const before = await on.balance(org)
      expect((await on.chat(org.key, { model })).status).toBe(200)
      expect(before - (await on.balance(org))).toBe(debit)
    }
    const events = await app.db.many(eventsOf, org.orgId)
    expect(events.map(event => event.costUinr)).toEqual(cases.map(([, , debit]) => debit))
  })

  test('of many concurrent calls, exactly as many are served as the balance pays for', async () => {
    const org = await on.newOrg()
    // Each call costs exactly what it holds: 50 output tokens at ₹40 per million.
    app.alpha.reset()
    app.alpha.script(() => ({ usage: { prompt_tokens: 0, completion_tokens: 50, total_tokens: 50 } }))
    const quiet = { messages: [{ role: 'user', content: '' }] }
    await on.credit(org, 0.02)
    const replies = await Promise.all(Array.from({ length: 60 }, () => on.chat(org.key, quiet)))
    let served = replies.filter(reply => reply.status === 200).length
    for (const { status, json, headers } of replies.filter(reply => reply.status !== 200)) {
      expect([status, json.error.code]).toEqual([402, 'insufficient_credits'])
      // A retry can succeed while running calls hold money that may come back. A retry cannot succeed when all money is spent.
      expect(headers.get('x-should-retry')).toBe(String(json.balance_inr > 0))
    }
    while ((await on.chat(org.key, quiet)).status === 200) served++
    expect(served).toBe(10)
    expect(await on.balance(org)).toBe(0n)
  })

  test('a stream is cut when the balance is used up during it, with an insufficient_credits error in the format of the stream', async () => {
    const org = await on.newOrg()
    await on.credit(org, 0.03)
    // The organisation also has a budget with room left, so the error must name the balance and not the budget.
    await app.gateway.app.limits.budgets.set(org.orgId, 'org', String(org.orgId), 1_000_000_000n)
    app.alpha.reset()
    app.alpha.script({ chunks: Array.from({ length: 400 }, () => 'word '.repeat(20)) })
    const cut = await on.chat(org.key, { stream: true, max_tokens: undefined })
    expect(cut.text).toContain('"code":"insufficient_credits"')
    expect(cut.text).toContain('"type":"billing_error"')
    const balance = await on.balance(org)
    expect(balance).toBeLessThanOrEqual(0n)
    expect(balance).toBeGreaterThan(-30_000n)
    expect((await on.chat(org.key)).status).toBe(402)
  })

  test('when both the budget and the balance are spent, the error names the budget', async () => {
    const org = await on.newOrg()
    await on.credit(org, 1)
    await app.gateway.app.limits.budgets.set(org.orgId, 'org', String(org.orgId), 3000n)
    expect((await on.chat(org.key)).status).toBe(200)
    await on.credit(org, -1)
    const refused = await on.chat(org.key)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'budget_exceeded'])
  })

  describe('own keys', () => {
    test('BYOK-14 ROUTE-56 a saved key with always_use false serves when no platform route may serve or the balance is spent; otherwise platform routes come first', async () => {
      const org = await on.newOrg()
      const cookie = await app.signIn(org.userId, org.orgId)
      expect((await app.call('PUT', '/me/byok/alpha', { key: 'sk-own-key-of-alpha-123456', always_use: false }, { cookie })).status).toBe(200)
      const keyOf = async (body: object = {}) => {
        app.alpha.reset()
        app.alpha.script(() => ({ usage }))
        const reply = await on.chat(org.key, body)
        return [reply.status, app.alpha.requests[0]?.headers.authorization?.includes('sk-own-key-of-alpha') ?? null]
      }
      await on.credit(org, 1)
      expect(await keyOf()).toEqual([200, false])
      expect(await keyOf({ model: 'byok-model' })).toEqual([200, true])
      await on.credit(org, -1)
      expect(await on.balance(org)).toBe(-costUinr)
      expect(await keyOf()).toEqual([200, true])
      expect(await keyOf({ stream: true })).toEqual([200, true])
      // The saved key does not work at this provider, so the error is about the balance.
      expect((await on.chat(org.key, { model: 'test-model', provider: 'beta' })).json.error.code).toBe('insufficient_credits')
      expect(await on.balance(org)).toBe(-costUinr)
      await on.credit(org, 1)
      expect(await keyOf()).toEqual([200, false])
    })

    test('IMG-14 an image on an own key has cost_uinr 0 and the value of the image in its usage row, and the balance does not change', async () => {
      const org = await on.newOrg()
      await on.credit(org, 1)
      app.alpha.reset()
      app.alpha.script(() => ({ body: { created: 1, data: [{ url: 'https://pictures.test/1' }, { url: 'https://pictures.test/2' }] } }))
      const body = { model: 'brush', prompt: 'a kiln', n: 2, upstream_key: 'sk-own-key-of-alpha-123456' }
      expect((await app.call('POST', '/v1/images/generations', body, { token: org.key })).status).toBe(200)
      expect(await on.balance(org)).toBe(1_000_000n)
      const rows = await usageRows(app)
      expect(rows.map(row => [row.model, row.costUinr, row.valueUinr])).toEqual([['brush', 0n, 4_000_000n]])
    })
  })

  describe('trial keys', () => {
    test('KEY-26 a trial key can call a platform model that is hosted in India free of charge', async () => {
      const org = await on.newOrg()
      const served = await on.chat(org.key, { model: 'test-model' })
      expect([served.status, served.headers.get('x-br-provider'), served.headers.get('x-br-cost-inr')]).toEqual([200, 'indus', '0'])
      expect((await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: ['hello'] }, { token: org.key })).status).toBe(200)
      expect(await on.balance(org)).toBe(0n)
      const events = await app.db.many(eventsOf, org.orgId)
      expect(events.map(event => event.costUinr)).toEqual([0n, 0n])
      expect(events.every(event => event.valueUinr > 0n)).toBe(true)
      expect(await app.db.many(ledgerOf, org.orgId)).toEqual([])
      expect(app.alpha.requests).toHaveLength(0)
    })

    test('KEY-27 a trial key that calls another platform model gets 402 insufficient_credits, and no provider is called', async () => {
      const org = await on.newOrg()
      for (const body of [{ model: 'alpha-only' }, { model: 'global-only' }, { model: 'test-model', provider: 'alpha' }]) {
        const refused = await on.chat(org.key, body)
        expect([refused.status, refused.json.error.code]).toEqual([402, 'insufficient_credits'])
        expect(refused.json.error.message).toContain('trial')
      }
      // A failure that credit would not solve has its own error code.
      expect((await on.chat(org.key, { model: 'byok-model' })).json.error.code).toBe('no_route')
      expect((await on.chat(org.key, { model: 'no-such-model' })).json.error.code).toBe('model_not_found')
      // When the route in India fails, the call is not sent abroad at the platform's cost.
      app.indus.reset()
      app.indus.script(() => ({ status: 500 }))
      expect((await on.chat(org.key, { model: 'test-model' })).status).toBe(502)
      expect([app.alpha.requests.length, app.beta.requests.length]).toEqual([0, 0])
      const preview = await app.call('POST', '/me/route/preview', { model: 'alpha-only' }, { token: org.key })
      expect([preview.status, preview.json.error.code]).toEqual([402, 'insufficient_credits'])
    })

    test('for a model that a trial key may not call, tokens are estimated and not counted by the provider', async () => {
      const org = await on.newOrg()
      app.beta.script(() => ({ body: { input_tokens: 12 } }))
      const count = async () => {
        const { status, json, headers } = await app.call('POST', '/v1/messages/count_tokens', { model: 'counted', messages: hello }, { token: org.key })
        return [status, json.input_tokens === 12, headers.get('x-br-estimate')]
      }
      expect(await count()).toEqual([200, false, 'true'])
      expect(app.beta.requests).toHaveLength(0)
      await on.credit(org, 1)
      expect(await count()).toEqual([200, true, null])
    })

    test('KEY-28 a trial key can use an own provider key, and nothing is debited', async () => {
      const org = await on.newOrg()
      const served = await on.chat(org.key, { provider: 'alpha', upstream_key: 'sk-own-key-of-alpha-123456' })
      expect([served.status, served.headers.get('x-br-cost-inr')]).toEqual([200, '0'])
      expect(await on.balance(org)).toBe(0n)
    })

    test('KEY-25 while billing is on, new keys are trial keys until the first credit turns all keys of the organisation into standard keys', async () => {
      const org = await on.newOrg()
      const cookie = await app.signIn(org.userId, org.orgId)
      const second = (await app.call('POST', '/me/keys', { name: 'second' }, { cookie })).json
      const tiers = async () => (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.map((key: { tier: string }) => key.tier)
      expect(await tiers()).toEqual(['trial', 'trial'])
      for (const key of [org.key, second.key]) expect((await on.chat(key)).status).toBe(402)
      await on.credit(org, 5)
      expect(await tiers()).toEqual(['standard', 'standard'])
      for (const key of [org.key, second.key]) expect((await on.chat(key)).status).toBe(200)
      expect((await app.call('POST', '/me/keys', { name: 'third' }, { cookie })).json.tier).toBe('standard')
      // A standard key stays a standard key when the balance is used up.
      await on.credit(org, -5)
      expect(await tiers()).toEqual(['standard', 'standard', 'standard'])
      expect((await on.chat(org.key, { model: 'test-model' })).status).toBe(402)
    })
  })

  test('whoami tells an agent the remaining balance', async () => {
    const org = await on.newOrg()
    const creditOf = async () => (await app.call('GET', '/v1/me/whoami', undefined, { token: org.key })).json.credit
    expect(await creditOf()).toEqual({ balance_inr: 0, trial: true })
    await on.credit(org, 1)
    expect((await on.chat(org.key)).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    expect(await creditOf()).toEqual({ balance_inr: 0.997, trial: false })
  })

  test('an agent token counts as a trial credential as long as the key that made it', async () => {
    const org = await on.newOrg()
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'trier' }, { token: org.key })).json
    const token = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: org.key })).json.access_token
    expect((await on.chat(token)).status).toBe(402)
    expect((await on.chat(token, { model: 'test-model' })).headers.get('x-br-provider')).toBe('indus')
    await on.credit(org, 1)
    expect((await on.chat(token)).status).toBe(200)
    expect(await on.balance(org)).toBe(1_000_000n - costUinr)
  })
})

test('KEY-25 while billing is off, every key is standard, and no call is refused for lack of credit', async () => {
  const app = await startApp()
  try {
    const cookie = await app.signIn()
    expect((await app.call('GET', '/me/keys', undefined, { cookie })).json.keys[0].tier).toBe('standard')
    for (const model of ['alpha-only', 'global-only', 'test-model'])
      expect((await app.call('POST', '/v1/chat/completions', { model, messages: hello })).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    expect(await app.db.many(ledgerOf, app.orgId)).toEqual([])
    expect((await app.call('GET', '/v1/me/whoami')).json.credit).toBeNull()
    // Here a trial key from a time with billing gets credit while billing is off. It becomes a standard key permanently, so it must stay one when
    // billing comes back.
    await app.db.script(`update api_keys set tier = 'trial', rpm_limit = 300, daily_limit = 7 where org_id = ${app.orgId}`)
    await app.gateway.app.operator.credits.give({ orgId: app.orgId, reason: 'grant', amountUinr: 1n, ref: 'before billing' })
    expect(await app.db.many(tiersOf, app.orgId)).toEqual([{ tier: 'standard', rpm: 600, daily: 7 }])
  } finally {
    await app.stop()
  }
})
