import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const codeOf = ({ status, json }: TestReply) => [status, json?.error?.code]
const usdRate = { rate: '88.25', rate_as_of: '2026-11-28' }

/** Every rupee figure of a reply with its place. */
function rupeesIn(value: unknown, place: readonly (string | number)[] = []): [place: readonly (string | number)[], inr: number][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => {
    const at = [...place, Array.isArray(value) ? Number(name) : name]
    return typeof field === 'number' && name.includes('_inr') ? [[at, field] as [typeof at, number]] : rupeesIn(field, at)
  })
}
const at = (value: unknown, place: readonly (string | number)[]): unknown =>
  place.reduce<unknown>((found, step) => (found as Record<string | number, unknown> | null | undefined)?.[step], value)
/** Decimal text of an amount in dollars, computed in another way than the gateway does. */
const dollars = (inr: number): string => {
  const [micro, rate] = [BigInt(Math.round(inr * 1e6)) * 100n, 8825n]
  const rest = micro % rate
  const rounded = micro / rate + (rest * 2n >= rate ? 1n : 0n)
  return String(Number(rounded) / 1e6)
}

describe('the display currency of an organisation', () => {
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp({ env: { FX_RATES: 'USD=88.25@2026-11-28,JPY=0.5838@2026-11-27' } })
    owner = await app.signIn()
    app.alpha.script(() => ({ usage: { prompt_tokens: 70_001, completion_tokens: 1_000_003, total_tokens: 1_070_004 } }))
  })
  afterAll(() => app.stop())
  const set = (currency: unknown, cookie = owner) => app.call('PUT', '/me/org/display-currency', { currency }, { cookie })
  const get = (path: string, cookie = owner) => app.call('GET', path, undefined, path.startsWith('/v1') ? {} : { cookie })

  test('CURR-01 reports, CSV and lists show every rupee figure in the display currency with the dated rate, and limits stay in rupees', async () => {
    const agent = await app.newAgent('buyer')
    const headers = { 'x-br-agent-id': 'buyer', 'x-br-run-id': 'shopping' }
    const chat = () => app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, max_tokens: 100 }, { headers })
    for (const [scope, id] of [
      ['agent', agent.id],
      ['key', app.keyId],
    ] as const)
      await app.setBudget(scope, id, 1000)
    expect((await chat()).status).toBe(200)
    const before = await app.call('GET', '/v1/usage.csv')
    expect(Object.hasOwn((await get('/v1/usage')).json, 'display')).toBe(false)

    expect((await set('USD')).json).toEqual({ ok: true, currency: 'USD', display_rate: usdRate })
    expect((await get('/me')).json.org).toMatchObject({ display_currency: 'USD', display_rate: usdRate })
    const [call] = (await get('/me/activity/events')).json.events
    for (const path of [
      '/v1/usage?group_by=day',
      '/me/usage/report',
      '/me/usage',
      '/me/usage/daily',
      '/me/activity',
      '/me/activity/events',
      `/me/activity/events/${call.request_id}`,
      '/v1/me/runs',
      '/v1/me/runs/shopping',
      '/v1/me/budgets',
      '/me/budgets',
      '/v1/me/agents',
      `/v1/me/agents/${agent.id}`,
      '/me/keys',
      '/me/members',
    ]) {
      const { status, json } = await get(path)
      expect(status, path).toBe(200)
      const { display, ...rest } = json
      expect(display, path).toMatchObject({ currency: 'USD', ...usdRate })
      const figures = rupeesIn(rest)
      expect(figures.length, path).toBeGreaterThan(0)
      for (const [place, inr] of figures) expect(at(display.amounts, place), `${path} ${place.join('.')}`).toBe(dollars(inr))
    }

    const csv = (await app.call('GET', '/v1/usage.csv')).text.trimEnd().split('\r\n')
    const old = before.text.trimEnd().split('\r\n')
    expect(csv[0]).toBe(`${old[0]},cost_display,value_display,display_currency,display_rate,display_rate_as_of`)
    const inr = Number(csv[1]?.split(',')[7])
    expect(inr).toBeGreaterThan(0)
    expect(csv[1]).toBe(`${old[1]},${dollars(inr)},${dollars(inr)},USD,88.25,2026-11-28`)
    const hours = (await get('/me/activity?format=csv&group=hour')).text.split('\r\n')[0]
    expect(hours).toMatch(/,hour,cost_display,value_display,display_currency,display_rate,display_rate_as_of$/)

    // Budgets are what they were, and the call is charged in rupees.
    const { budgets } = (await get('/v1/me/budgets')).json
    expect(budgets).toContainEqual(expect.objectContaining({ scope: 'key', cap_inr: 1000 }))
    const again = await chat()
    expect([again.status, again.headers.get('x-br-cost-inr')]).toEqual([200, String(inr)])

    expect((await set(null)).json).toEqual({ ok: true, currency: null, display_rate: null })
    expect(Object.hasOwn((await get('/v1/usage')).json, 'display')).toBe(false)
    expect((await app.call('GET', '/v1/usage.csv')).text.split('\r\n')[0]).toBe(old[0])
  })

  test('owners and admins set it for their own organisation, and a currency without a rate is refused with the ones that have one', async () => {
    const admin = await app.newMember('admin')
    const member = await app.newMember('member')
    const other = await app.otherOrg('Other Currency')
    const otherOwner = await app.signIn(other.userId, other.orgId)
    expect((await set('JPY', admin.cookie)).json).toMatchObject({ currency: 'JPY', display_rate: { rate: '0.5838', rate_as_of: '2026-11-27' } })
    expect(codeOf(await set('USD', member.cookie))).toEqual([403, 'forbidden'])
    expect((await get('/me', otherOwner)).json.org).toMatchObject({ display_currency: null, display_rate: null })
    expect((await app.call('GET', '/v1/usage', undefined, { token: other.key })).json.display).toBeUndefined()
    const refused = await set('EUR')
    expect(codeOf(refused)).toEqual([400, 'bad_request'])
    expect(refused.json.error.message).toMatch(/no rate for EUR.*JPY, USD/)
    for (const wrong of ['INR', 'usd', 'US', 'USDX', '', 5, {}, undefined]) expect(codeOf(await set(wrong)), String(wrong)).toEqual([400, 'bad_request'])
    expect((await get('/me')).json.org.display_currency).toBe('JPY')
    await set(null)
  })
})
