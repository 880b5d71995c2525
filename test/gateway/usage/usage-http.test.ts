import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { settings } from '../../../src/platform/config.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { eventOf, request } from '../limits/engine.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
/** Half a minute before midnight in India at the end of 31 October 2026. */
const lastOfOctober = Date.UTC(2026, 9, 31, 18, 29, 30)
const minuteMs = 60_000

describe('usage over HTTP', () => {
  const clock = movableClock(lastOfOctober)
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(Date.UTC(2026, 10, 3, 12, 0))
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const chat = async (token: string, body: object = {}, headers: Record<string, string> = {}): Promise<void> => {
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, { token, headers })
    expect(reply.status).toBe(200)
  }
  const usage = (token: string, query = '') => app.call('GET', `/v1/usage${query}`, undefined, { token })
  const requests = async (token: string, query = ''): Promise<number> => (await usage(token, query)).json.totals.requests
  /** Inserts events of calls at these instants, without money. */
  const put = async (orgId: number, instantsMs: readonly number[], models: readonly string[] = ['m']): Promise<void> => {
    const events = instantsMs.flatMap(atMs => models.map(model => ({ ...eventOf(request(0n, {}, atMs), 0n, { model, userId: null, keyId: null }), orgId })))
    await app.db.tx(async tx => {
      await insertUsageEvents(tx, events)
      await keepsRollups(0)(tx, events)
    })
  }
  /** Creates a separate organisation for each test, so that its sums are its own. */
  const newOrg = (name: string) => app.otherOrg(name)

  test('USAGE-02 USAGE-04 days are IST days, both ends of a span count, and the default span is the month to date', async () => {
    const { key } = await newOrg('Days')
    clock.moveTo(lastOfOctober)
    await chat(key)
    clock.moveTo(lastOfOctober + minuteMs)
    await chat(key)
    await chat(key)
    clock.moveTo(Date.UTC(2026, 10, 3, 12, 0))
    await chat(key)
    expect(await requests(key, '?from=2026-10-31&to=2026-10-31')).toBe(1)
    expect(await requests(key, '?from=2026-11-01&to=2026-11-01')).toBe(2)
    expect(await requests(key, '?from=2026-10-31&to=2026-11-03')).toBe(4)
    expect(await requests(key, '?from=2026-11-02&to=2026-11-02')).toBe(0)
    const month = (await usage(key)).json
    expect([month.from, month.to, month.totals.requests]).toEqual(['2026-11-01', '2026-11-03', 3])
    // The last and first millisecond of a month, of a leap day and of a year.
    const edges = await newOrg('Edges')
    for (const text of ['2027-04-30T18:30:00.000Z', '2028-02-29T18:30:00.000Z', '2028-12-31T18:30:00.000Z']) {
      const firstMs = Date.parse(text)
      await put(edges.orgId, [firstMs - 1, firstMs, firstMs + 1])
      const [last, first] = [text.slice(0, 10), istDay(firstMs)]
      expect([await requests(edges.key, `?from=${last}&to=${last}`), await requests(edges.key, `?from=${first}&to=${first}`)]).toEqual([1, 2])
      clock.moveTo(firstMs - 500)
      expect((await usage(edges.key)).json).toMatchObject({ from: `${last.slice(0, 7)}-01`, to: last, totals: { requests: 1 } })
    }
  })

  test('USAGE-03 an invalid span gets 400 bad_request', async () => {
    const { key } = await newOrg('Spans')
    for (const query of [
      '?from=2026-11-02&to=2026-11-01',
      '?from=2026-02-30',
      '?to=2026-13-01',
      '?from=yesterday',
      '?from=20261101',
      '?to=',
      '?from=2026-11-1',
      '?from=2026-11-01T00:00:00Z',
    ]) {
      const reply = await usage(key, query)
      expect([reply.status, reply.json.error?.code], query).toEqual([400, 'bad_request'])
    }
  })

  test('USAGE-01 USAGE-12 SHAPE-26 the rows by model and by agent add up to the totals, and so does the CSV', async () => {
    const { key } = await newOrg('Sums')
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'adder' }, { token: key })).json
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })).json.access_token
    await chat(key)
    await chat(token, { stream: true })
    await chat(token, { model: 'same-id', data_policy: undefined })
    await chat(key, { provider: 'indus' })
    await chat(key, { upstream_key: 'sk-own-credential-2', provider: 'beta' })
    const embedded = await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: 'words' }, { token: key })
    expect(embedded.status).toBe(200)
    const query = '?from=2026-11-01&to=2026-11-30'
    const { from, to, totals, by_model, by_agent } = (await usage(key, query)).json
    expect([from, to]).toEqual(['2026-11-01', '2026-11-30'])
    const fields = ['requests', 'prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_uinr'] as const
    type Row = Record<(typeof fields)[number] | 'value_inr' | 'cost_inr', number>
    for (const rows of [by_model, by_agent] as Row[][]) {
      for (const field of fields)
        expect(
          rows.reduce((sum, row) => sum + row[field], 0),
          field,
        ).toBe(totals[field])
      for (const field of ['value_inr', 'cost_inr'] as const)
        expect(
          rows.reduce((sum, row) => sum + row[field], 0),
          field,
        ).toBeCloseTo(totals[field], 9)
      for (const row of rows) for (const field of [...fields, 'value_inr', 'cost_inr'] as const) expect(typeof row[field], field).toBe('number')
    }
    expect(totals).toMatchObject({ requests: 6, prompt_tokens: 5 * 12 + 7, completion_tokens: 5 * 5, total_tokens: 5 * 17 + 7 })
    expect(Math.round(totals.cost_inr * 1e6)).toBe(totals.cost_uinr)
    expect(by_model.map((row: { model: string }) => row.model).sort()).toEqual(['same-id', 'test-embed', 'test-model'])

    const csv = await usage(key, `${query}&format=csv`)
    expect(csv.headers.get('content-type')).toContain('text/csv')
    const [head = [], ...lines] = csv.text
      .trimEnd()
      .split('\r\n')
      .map(line => line.split(','))
    const column = (name: string): number => lines.reduce((sum, line) => sum + Number(line[head.indexOf(name)]), 0)
    for (const field of ['requests', 'prompt_tokens', 'completion_tokens']) expect(column(field), field).toBe(totals[field])
    for (const field of ['cost_inr', 'value_inr']) expect(column(field), field).toBeCloseTo(totals[field], 9)
    expect(lines.map(line => [line[head.indexOf('model')], line[head.indexOf('provider')]])).toContainEqual(['test-model', 'indus'])
  })

  test('USAGE-05 format=csv returns text/csv', async () => {
    const { key } = await newOrg('Tables')
    await chat(key)
    const csv = await usage(key, '?format=csv')
    expect([csv.status, csv.headers.get('content-type')?.split(';')[0]]).toEqual([200, 'text/csv'])
    expect(csv.text.split('\r\n')[1]).toMatch(/^2026-11-\d\d,test-model,alpha,1,12,5,/)
    expect((await usage(key, '?format=xml')).status).toBe(400)
  })

  test('USAGE-06 SHAPE-27 GET /v1/usage.csv has a line for each day, model and provider, and equals the answer with format=csv', async () => {
    const { key } = await newOrg('Exports')
    clock.moveTo(Date.UTC(2028, 1, 29, 18, 29, 30))
    await chat(key)
    clock.moveTo(Date.UTC(2028, 1, 29, 18, 30))
    await chat(key)
    await chat(key, { stream: true })
    await chat(key, { provider: 'indus' })
    await chat(key, { model: 'same-id' })
    const csv = await app.call('GET', '/v1/usage.csv?from=2028-02-01&to=2028-03-31', undefined, { token: key })
    expect([csv.status, csv.headers.get('content-type'), csv.headers.get('content-disposition')]).toEqual([
      200,
      'text/csv; charset=utf-8',
      'attachment; filename="usage-2028-02-01-to-2028-03-31.csv"',
    ])
    expect(csv.text).toMatch(/^day,model,provider,requests,prompt_tokens,completion_tokens,cost_inr,value_inr[,\r]/)
    // 12 tokens at ₹10 and 5 tokens at ₹40 per million. In India they cost ₹30 and ₹120 per million.
    const shown = csv.text
      .trimEnd()
      .split('\r\n')
      .slice(1)
      .map(line => line.split(',').slice(0, 8).join(','))
    expect(shown).toEqual([
      '2028-02-29,test-model,alpha,1,12,5,0.00032,0.00032',
      '2028-03-01,same-id,alpha,1,12,5,0.00032,0.00032',
      '2028-03-01,test-model,alpha,2,24,10,0.00064,0.00064',
      '2028-03-01,test-model,indus,1,12,5,0.00096,0.00096',
    ])
    expect((await usage(key, '?from=2028-02-01&to=2028-03-31&format=csv')).text).toBe(csv.text)
    // The leap day only, and then the month to date.
    expect((await app.call('GET', '/v1/usage.csv?from=2028-02-29&to=2028-02-29', undefined, { token: key })).text.trimEnd().split('\r\n')).toHaveLength(2)
    expect((await app.call('GET', '/v1/usage.csv', undefined, { token: key })).headers.get('content-disposition')).toContain('2028-03-01-to-2028-03-01')
    for (const query of ['?from=2027-02-29', '?from=2028-03-02&to=2028-03-01']) {
      const refused = await app.call('GET', `/v1/usage.csv${query}`, undefined, { token: key })
      expect([refused.status, refused.json.error?.code]).toEqual([400, 'bad_request'])
    }
    expect((await app.call('GET', '/v1/usage.csv', undefined, { token: null })).status).toBe(401)
  })

  test('USAGE-07 cells are quoted as in RFC 4180, and no cell is a formula for a spreadsheet', async () => {
    const { orgId, key } = await newOrg('Quotes')
    const atMs = Date.UTC(2028, 4, 5, 6, 0)
    const models = ['=HYPERLINK("http://x.test","a, b")', '+1', '-1', '@sum(a)', '\tx', 'a,b', 'say "x"', 'two\r\nlines', 'plain']
    await put(orgId, [atMs], models)
    const { text } = await app.call('GET', '/v1/usage.csv?from=2028-05-05&to=2028-05-05', undefined, { token: key })
    const cells = ['"\'=HYPERLINK(""http://x.test"",""a, b"")"', "'+1", "'-1", "'@sum(a)", "'\tx", '"a,b"', '"say ""x"""', '"two\r\nlines"', 'plain']
    for (const cell of cells) expect(text).toContain(`\r\n2028-05-05,${cell},p,1,3,4,0,0,`)
    expect(text.endsWith('\r\n')).toBe(true)
  })

  test("USAGE-08 calls are listed under the registered agent, under the header's label if it names no agent, or under null", async () => {
    const { key } = await newOrg('Agents')
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'registered' }, { token: key })).json
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })).json.access_token
    await chat(token)
    await chat(key, {}, { 'x-br-agent-id': 'registered' })
    for (let i = 0; i < 3; i++) await chat(key, {}, { 'x-br-agent-id': 'nightly-build' })
    for (let i = 0; i < 4; i++) await chat(key)
    const { by_agent } = (await usage(key)).json
    const short = by_agent.map(({ id, name, label, requests }: Record<string, unknown>) => ({ id, name, label, requests }))
    expect(short).toHaveLength(3)
    expect(short).toContainEqual({ id: agent.id, name: 'registered', label: null, requests: 2 })
    expect(short).toContainEqual({ id: null, name: null, label: 'nightly-build', requests: 3 })
    expect(short).toContainEqual({ id: null, name: null, label: null, requests: 4 })
  })

  test("USAGE-11 a call on the caller's own provider key has a value and no cost", async () => {
    const { key } = await newOrg('Own keys')
    await chat(key, { provider: 'alpha', upstream_key: 'sk-own-credential-3' })
    const { totals, by_model } = (await usage(key)).json
    expect(totals).toMatchObject({ requests: 1, cost_inr: 0, cost_uinr: 0 })
    // 12 tokens at ₹10 per million and 5 tokens at ₹40 per million.
    expect(totals.value_inr).toBeCloseTo(0.00032, 9)
    expect(by_model[0]).toMatchObject({ model: 'test-model', cost_inr: 0, value_inr: totals.value_inr })
  })

  test('TEST-05 only the clock that a test injects can move the time, and no setting or request can', async () => {
    const { key } = await newOrg('Clock')
    clock.moveTo(Date.UTC(2026, 11, 24, 6))
    for (const name of ['date', 'x-br-now', 'x-br-time', 'x-test-clock']) await chat(key, { now: 0, timestamp: 0 }, { [name]: '2020-01-01T00:00:00Z' })
    const month = (await usage(key)).json
    expect([month.from, month.to, month.totals.requests]).toEqual(['2026-12-01', '2026-12-24', 4])
    expect(Object.keys(settings).filter(name => /(^|_)(CLOCK|NOW|EPOCH|FAKE|TRAVEL|TEST)(_|$)/.test(name))).toEqual([])
  })

  test('the usage of another organisation is not shown', async () => {
    const { key } = await newOrg('Alone')
    expect((await usage(key, '?from=2026-10-01&to=2026-11-30')).json).toMatchObject({ totals: { requests: 0, value_inr: 0 }, by_model: [], by_agent: [] })
  })
})
