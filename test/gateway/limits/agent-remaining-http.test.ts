import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { inrTextOf, uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import { picture as pictureOf } from '../../harness/pictures.ts'
import { wavOf } from '../../harness/wav.ts'

const header = 'x-br-budget-remaining-inr'
const setParent = statement<[id: number, parentId: number]>('test.agent_remaining_http_set_parent', 'update agents set parent_id = $2::int where id = $1::int')
const spentOf = statement<[agentId: string], { spent: bigint }>(
  'test.spent_of_agent',
  `select coalesce(sum(spent), 0)::bigint as "spent" from counters where scope = 'agent' and scope_id = $1::text and metric = 'spend'`,
)

interface Governed {
  readonly at: string
  /** The path of the row, when it has parameters. */
  readonly path?: string
  /** True when every reply is a stream. */
  readonly isStream?: true
  readonly body: Readonly<Record<string, unknown>>
  readonly file?: { readonly field: string; readonly bytes: () => Promise<Buffer> | Buffer }
  readonly reply?: unknown
  readonly replyType?: string
  readonly streams?: boolean
}
const messages = [{ role: 'user', content: 'Hello' }]
const content = { role: 'user', parts: [{ text: 'Hello' }] }
const generated = { contents: [content], generationConfig: { maxOutputTokens: 100 } }
const ofGoogle = (model: string, verb: string) => ({ at: `/v1beta/models/${model}:${verb}`, path: `/v1beta/models/{model+}:${verb}` })
const picture = { data: [{ url: 'https://pictures.example/1.png' }] }
const rows: readonly Governed[] = [
  { at: '/v1/chat/completions', body: { model: 'alpha-only', messages, max_tokens: 100 }, streams: true },
  { at: '/v1/messages', body: { model: 'alpha-only', messages, max_tokens: 100 }, streams: true },
  { at: '/v1/responses', body: { model: 'alpha-only', input: 'Hello', max_output_tokens: 100 }, streams: true },
  { ...ofGoogle('alpha-only', 'generateContent'), body: generated },
  { ...ofGoogle('alpha-only', 'streamGenerateContent'), body: generated, isStream: true },
  { ...ofGoogle('test-embed', 'embedContent'), body: { content } },
  { ...ofGoogle('test-embed', 'batchEmbedContents'), body: { requests: [{ model: 'models/test-embed', content }] } },
  { at: '/v1/embeddings', body: { model: 'test-embed', input: 'Hello' } },
  { at: '/v1/images/generations', body: { model: 'draw', prompt: 'Hello' }, reply: picture },
  { at: '/v1/images/edits', body: { model: 'draw', prompt: 'Hello' }, reply: picture, file: { field: 'image', bytes: () => pictureOf(8, 8) } },
  { at: '/v1/rerank', body: { model: 'rank', query: 'a', documents: ['b'] }, reply: { results: [{ index: 0, relevance_score: 1 }] } },
  { at: '/v1/moderations', body: { model: 'guard', input: 'Hello' }, reply: { id: 'm', results: [{ categories: {} }] } },
  { at: '/v1/audio/speech', body: { model: 'say', input: 'Hello' }, reply: 'sound', replyType: 'audio/mpeg' },
  { at: '/v1/audio/transcriptions', body: { model: 'hear' }, reply: { text: 'hello' }, file: { field: 'file', bytes: () => wavOf(1) } },
]

describe('the remaining budget of an agent', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile: fileWithMedia, env: { CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  async function send(row: Governed, token: string, more: object = {}, headers: Record<string, string> = {}) {
    if (row.reply !== undefined) app.alpha.script(() => ({ body: row.reply, ...(row.replyType ? { headers: { 'content-type': row.replyType } } : {}) }))
    const body = { ...row.body, ...more }
    const sent: Record<string, string> = { authorization: `Bearer ${token}`, ...headers }
    let init: RequestInit = { headers: { ...sent, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    if (row.file !== undefined) {
      const form = new FormData()
      for (const [name, value] of Object.entries(body)) form.append(name, String(value))
      form.append(row.file.field, new Blob([new Uint8Array(await row.file.bytes())]), 'a.bin')
      init = { headers: sent, body: form }
    }
    const reply = await fetch(app.baseUrl + row.at, { method: 'POST', ...init })
    const text = await reply.text()
    return { status: reply.status, text, left: reply.headers.get(header) }
  }
  const spent = async (agentId: number): Promise<bigint> => {
    await app.gateway.app.limits.flushNow()
    return (await app.db.one(spentOf, String(agentId))).spent
  }
  const leftOf = async (agentId: number, capInr: number): Promise<string> => inrTextOf(uinrFromInr(capInr) - (await spent(agentId)))
  const chatRow = rows[0] as Governed
  const agentWith = async (name: string, inr: number | null) => {
    const agent = await app.newAgent(name)
    if (inr !== null) await app.setBudget('agent', agent.id, inr)
    return agent
  }

  test('BUDX-07 every governed reply to an agent, whole, streamed or an error, has the remaining budget, exact to the micro-rupee', async () => {
    const charging = bindingsOf(endpointTable).filter(({ row }) => row.inference === true)
    expect(charging.map(({ at }) => at.split(' ')[1]).sort()).toEqual(rows.map(({ at, path = at }) => path).sort())
    for (const row of rows) {
      const agent = await agentWith(`agent of ${row.at.replaceAll('/', ' ')}`, 100)
      const whole = await send(row, agent.token)
      expect([row.at, whole.status]).toEqual([row.at, 200])
      // A reply that is relayed as it arrives has its headers before it is charged.
      const isOnItsWay = row.isStream === true || row.replyType === 'audio/mpeg'
      expect([row.at, whole.left]).toEqual([row.at, isOnItsWay ? '100' : await leftOf(agent.id, 100)])
      expect(await spent(agent.id)).toBeGreaterThan(0n)
      if (row.streams) {
        const before = await leftOf(agent.id, 100)
        const streamed = await send(row, agent.token, { stream: true })
        expect([row.at, streamed.status, streamed.left]).toEqual([row.at, 200, before])
      }
      const before = await leftOf(agent.id, 100)
      // The provider first refuses the request and then fails. Both are replies to admitted calls.
      app.alpha.script(() => ({ status: 400, body: { error: { message: 'no', type: 'invalid_request_error' } } }))
      expect(await send({ ...row, reply: undefined }, agent.token)).toMatchObject({ status: 400, left: before })
      for (const upstream of [app.alpha, app.indus]) upstream.script(() => ({ status: 500, body: {} }))
      expect(await send({ ...row, reply: undefined }, agent.token)).toMatchObject({ status: 502, left: before })
      app.alpha.reset()
      app.indus.reset()
      await app.setBudget('agent', agent.id, 0.000001)
      expect(await send(row, agent.token)).toMatchObject({ status: 429, left: '0' })
    }
  })

  test('the remaining budget is the lowest of agent and ancestors, is also sent to a key that names the agent, and is absent without one', async () => {
    const parent = await agentWith('parent', 0.5)
    const child = await agentWith('child', 80)
    await app.db.exec(setParent, child.id, parent.id)
    const token = (await app.call('POST', `/v1/me/agents/${child.id}/token`, {})).json.access_token
    expect((await send(chatRow, token)).left).toBe(await leftOf(parent.id, 0.5))
    expect(await spent(child.id)).toBe(await spent(parent.id))
    await app.setBudget('agent', parent.id, 1000)
    expect((await send(chatRow, token)).left).toBe(await leftOf(child.id, 80))
    await app.setBudget('agent', parent.id, null)
    expect((await send(chatRow, token)).left).toBe(await leftOf(child.id, 80))
    await app.setBudget('agent', child.id, null)
    expect((await send(chatRow, token)).left).toBeNull()

    const named = await agentWith('named', 7)
    const { key } = await app.newKey({ budgetInr: 3 })
    expect((await send(chatRow, key, {}, { 'x-br-agent-id': 'named' })).left).toBe(await leftOf(named.id, 7))
    expect((await send(chatRow, key, {}, { 'x-br-agent-id': 'nobody in particular' })).left).toBeNull()
    expect((await send(chatRow, key)).left).toBeNull()
  })

  test('the result of an agent’s chat tool contains the remaining budget', async () => {
    const agent = await agentWith('over MCP', 20)
    const ask = async (token: string) => {
      const reply = await fetch(`${app.baseUrl}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: { model: 'alpha-only', prompt: 'Hello' } } }),
      })
      const text = await reply.text()
      const line = text.startsWith('{') ? text : (text.split('\n').findLast(part => part.startsWith('data: {')) ?? '').slice(6)
      return JSON.parse(line).result.structuredContent
    }
    expect(await ask(agent.token)).toMatchObject({ budget_remaining_inr: 20 })
    const left = Number(await leftOf(agent.id, 20))
    expect(left).toBeLessThan(20)
    expect(await ask(agent.token)).toMatchObject({ budget_remaining_inr: left })
    expect(await ask(app.key)).not.toHaveProperty('budget_remaining_inr')
  })

  test('the remaining budget is a plain decimal and costs no round trip to the database', async () => {
    const { token } = await agentWith('plain', 123_456_789.000001)
    const first = await send(chatRow, token)
    expect(first.left).toMatch(/^\d+(\.\d{1,6})?$/)
    const before = app.gateway.app.limits.acquires
    for (let i = 0; i < 50; i++) expect((await send(chatRow, token)).left).toMatch(/^\d+(\.\d{1,6})?$/)
    expect(app.gateway.app.limits.acquires - before).toBeLessThanOrEqual(1)
  })
})

test('amounts are written as plain decimals', () => {
  const cases: [bigint, string][] = [
    [0n, '0'],
    [1n, '0.000001'],
    [100_000n, '0.1'],
    [1_000_000n, '1'],
    [1_000_001n, '1.000001'],
    [-2_500_000n, '-2.5'],
    [123_456_789_012_345_678_901n, '123456789012345.678901'],
  ]
  for (const [uinr, text] of cases) expect(inrTextOf(uinr)).toBe(text)
})
