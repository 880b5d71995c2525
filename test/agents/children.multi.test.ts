import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'

describe.runIf(onPostgres)('children that several processes create', () => {
  let fleet: Fleet
  let processes: readonly GatewayProcess[]
  let made = 0
  beforeAll(async () => {
    fleet = await startFleet()
    processes = [await fleet.start(), await fleet.start(), await fleet.start()]
  })
  afterAll(() => fleet?.stop())

  const at = (i: number): GatewayProcess => processes[i % processes.length] as GatewayProcess
  const agents = async () => (await call(at(0), fleet.key, 'GET', '/v1/me/agents')).json.agents
  async function lead(inr: number | null): Promise<{ id: number; token: string }> {
    const { id } = (await call(at(0), fleet.key, 'POST', '/v1/me/agents', { name: `lead ${made++}`, may_delegate: true })).json
    if (inr !== null) await call(at(0), fleet.key, 'POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr })
    return { id, token: (await call(at(0), fleet.key, 'POST', `/v1/me/agents/${id}/token`, {})).json.access_token }
  }
  const child = (i: number, parent: { id: number; token: string }, body: object = {}) =>
    call(at(i), parent.token, 'POST', `/v1/me/agents/${parent.id}/children`, { name: `child ${made++}`, ...body })

  test('thirty concurrent creates on three processes together get no more than what is left', async () => {
    const parent = await lead(10)
    const replies = await Promise.all(Array.from({ length: 30 }, (_, i) => child(i, parent, { monthly_budget_inr: 1.5 })))
    const codes = replies.map(({ status, json }) => (status === 201 ? '201' : `${status} ${json.error.code}`)).sort()
    expect(codes).toEqual([...Array.from({ length: 6 }, () => '201'), ...Array.from({ length: 24 }, () => '409 budget_not_available')])
    expect(await fleet.violations()).toEqual([])
  })

  test('concurrent creates with one name on three processes create one child, and concurrent budget changes stay within the family', async () => {
    const parent = await lead(10)
    const replies = await Promise.all(Array.from({ length: 9 }, (_, i) => child(i, parent, { name: 'the same', monthly_budget_inr: 1 })))
    expect(new Set(replies.map(({ json }) => json.agent.id)).size).toBe(1)
    const others = await Promise.all([0, 1, 2].map(i => child(i, parent, { monthly_budget_inr: 1 })))
    const ids: number[] = [replies[0], ...others].map(reply => reply?.json.agent.id)
    const set = (i: number, id: number, inr: number) => call(at(i), fleet.key, 'POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr })
    const moves = [...ids.map((id, i) => set(i, id, 4)), ...ids.map((id, i) => set(i + 1, id, 5)), set(2, parent.id, 6), set(1, parent.id, 12)]
    for (const { status } of await Promise.all(moves)) expect([200, 409]).toContain(status)
    expect(await fleet.violations()).toEqual([])
  })

  test('a child that is created on one process while its parent is revoked on another is revoked too', async () => {
    for (let round = 0; round < 5; round++) {
      const top = await lead(null)
      const first = (await child(1, top, { may_delegate: true })).json
      const middle = { id: first.agent.id, token: first.access_token }
      const work = Array.from({ length: 6 }, (_, i) => child(i, i % 2 === 0 ? top : middle))
      const [revoked, ...replies] = await Promise.all([call(at(2), fleet.key, 'POST', `/v1/me/agents/${top.id}/revoke`, {}), ...work])
      expect(revoked.status).toBe(200)
      const below = (await agents()).filter((agent: { parent_id: number | null }) => agent.parent_id === top.id || agent.parent_id === middle.id)
      expect(below.filter((agent: { status: string }) => agent.status === 'active')).toEqual([])
      const tokens: string[] = replies.flatMap(({ status, json }) => (status === 201 ? [json.access_token] : []))
      for (const token of tokens) for (const process of processes) await until(async () => (await chat(process, token, 1)).status === 401)
    }
  })

  test("a rule that one process sets for a parent applies to a child on other processes, and calls of children spend the parent's budget", async () => {
    const parent = await lead(0.01)
    const { access_token: token } = (await child(0, parent, { monthly_budget_inr: 0.01 })).json
    for (const process of processes) expect((await chat(process, token, 1)).status).toBe(200)
    await call(at(0), fleet.key, 'PATCH', `/v1/me/agents/${parent.id}`, { max_output_tokens: 5 })
    for (const process of processes) await until(async () => (await chat(process, token, 6)).json.error?.code === 'call_cap_exceeded')
    await call(at(1), fleet.key, 'PATCH', `/v1/me/agents/${parent.id}`, { max_output_tokens: null })
    // One token costs 100 micro-rupees, so ₹0.01 pays for 100 tokens.
    for (const process of processes) await until(async () => (await chat(process, token, 40)).json.error?.code === 'agent_budget_exceeded')
    await until(async () => {
      const listed = await agents()
      const spent = listed.filter((agent: { id: number; parent_id: number | null }) => agent.id === parent.id || agent.parent_id === parent.id)
      return spent.length === 2 && spent[0].spend_month_inr === spent[1].spend_month_inr && spent[0].spend_month_inr >= 0.0099
    })
    expect(await fleet.violations()).toEqual([])
  })
})
