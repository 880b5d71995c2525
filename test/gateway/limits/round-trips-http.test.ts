import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const setParent = statement<[id: number, parentId: number]>('test.round_trips_http_set_parent_of', 'update agents set parent_id = $2::int where id = $1::int')
/** A call costs ₹0.004: 100 output tokens at ₹40 a million, and nothing for the prompt. */
const body = { model: 'alpha-only', max_tokens: 100, messages: [{ role: 'user', content: '' }] }
const usage = { prompt_tokens: 0, completion_tokens: 100, total_tokens: 100 }

describe('round trips for budgets, over HTTP', () => {
  let app: TestApp
  beforeAll(async () => {
    // Large leases, because on a slow machine leases by demand would be small, and the test counts round trips independently of the speed.
    app = await startApp({ env: { ALLOWANCE_SECONDS: '120' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    app.alpha.script(() => ({ usage }))
  })
  const limits = () => app.gateway.app.limits
  /** Makes an agent with three ancestors. Each of the four has a budget. */
  async function descendant(tag: string, inr: number): Promise<{ id: number; token: string }> {
    let parentId: number | null = null
    let id = 0
    for (const generation of ['great-grandmother', 'grandmother', 'mother', 'daughter']) {
      const made = await app.call('POST', '/v1/me/agents', { name: `${generation} ${tag}` })
      id = made.json.id
      await app.setBudget('agent', id, inr)
      if (parentId !== null) await app.db.exec(setParent, id, parentId)
      parentId = id
    }
    return { id, token: (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token }
  }
  const chat = async (token: string) => (await app.call('POST', '/v1/chat/completions', body, { token })).status

  test('while every budget of an agent and its ancestors has room, at most one call in a hundred asks the database', async () => {
    await app.setBudget('org', app.orgId, 1_000_000)
    const { token } = await descendant('with room', 100_000)
    for (let i = 0; i < 40; i++) expect(await chat(token)).toBe(200)
    await limits().flushNow()
    const { acquires } = limits()
    const calls = 600
    for (let i = 0; i < calls; i += 20) expect(await Promise.all(Array.from({ length: 20 }, () => chat(token)))).toEqual(Array(20).fill(200))
    expect(limits().acquires - acquires).toBeLessThanOrEqual(calls / 100)
  })

  test('near the end of a budget every call asks the database once, for all of its budgets together', async () => {
    const { token, id } = await descendant('near its end', 0.004 * 10)
    const asks: number[] = []
    for (let status = 200; status === 200; ) {
      const before = limits().acquires
      status = await chat(token)
      asks.push(limits().acquires - before)
    }
    // The last call was refused. It asks once more, after this process has returned its own unused leases.
    expect(asks).toHaveLength(11)
    for (const count of asks.slice(-4)) expect(count).toBeLessThanOrEqual(2)
    expect(await limits().budgets.get(app.orgId, 'agent', String(id))).toMatchObject({ spentUinr: 40_000n })
  })
})
