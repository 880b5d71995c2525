/** Increases of budgets and of caps of runs over several processes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../../harness/app.ts'
import { onPostgres } from '../../../harness/database.ts'
import { call, countReplies, type Fleet, type FleetReply, fleetAnswer, chat as fleetChat, startFleet, tokenUinr } from '../../../harness/fleet.ts'
import type { GatewayProcess } from '../../../harness/process.ts'

const costTokens = 100
const inr = (calls: number): number => (calls * costTokens * Number(tokenUinr)) / 1e6
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('increases over several processes', () => {
  let fleet: Fleet
  let members: GatewayProcess[]
  let cookie: string
  beforeAll(async () => {
    fleet = await startFleet({ RECALL_WAIT_MS: '1000' })
    members = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess
  const chat = (i: number, token: string, run: string | null): Promise<FleetReply> =>
    fleetChat(member(i), token, costTokens, {}, run === null ? {} : { 'x-br-run-id': run })
  const code = (reply: FleetReply): string => reply.json?.error?.code ?? 'ok'
  const post = async (path: string, body: object): Promise<FleetReply> => {
    const response = await fetch(`${member(0).baseUrl}${path}`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: '', json: await response.json() }
  }

  const subjects = {
    async 'the budget of an agent'(base: number) {
      const agent = await fleet.newAgent('budget asks', inr(base))
      return { agent, run: null, asked: { scope: 'agent' } as object }
    },
    async 'the cap of a run'(base: number) {
      const agent = await fleet.newAgent('run asks', null)
      await call(member(0), fleet.key, 'PATCH', `/v1/me/agents/${agent.id}`, { run: { max_cost_inr: inr(base) } })
      for (const [i] of members.entries()) await until(async () => (await chat(i, agent.token, `probe ${i}`)).headers.get('x-br-run-remaining-inr') !== null)
      return { agent, run: 'shared', asked: { scope: 'run', run_id: 'shared' } as object }
    },
  }

  test.for(Object.keys(subjects) as (keyof typeof subjects)[])(
    'RUN-07: an increase of %s holds on three processes within a second, admits exactly what it pays for, and ends on all of them',
    { timeout: 60_000 },
    async name => {
      const { agent, run, asked } = await subjects[name](3)
      const { token } = agent
      fleet.upstream.requests.length = 0
      /** Makes calls on all processes until each refuses. Returns how many passed. */
      const used = async (): Promise<number> => {
        const counts = countReplies(await Promise.all(times(24).map(i => chat(i, token, run))))
        let passed = counts['200'] ?? 0
        // What other processes hold idle comes back when they are asked.
        for (const [i] of members.entries()) for (let n = 0; n < 12 && code(await chat(i, token, run)) === 'ok'; n++) passed++
        return passed
      }
      expect(await used()).toBe(3)
      // A refused process asks again soon, and never because of the refusal that it remembers.
      const request = (await call(member(1), token, 'POST', '/v1/me/budget-requests', { ...asked, amount_inr: inr(9), reason: 'The rest of the job' })).json
        .request
      const end = new Date(Date.now() + 6_000).toISOString()
      const granted = await post(`/me/budget-requests/${request.id}`, { approve: true, amount_inr: inr(6), until: end })
      expect(granted.json.request).toMatchObject({ state: 'granted', granted_inr: inr(6) })
      const atMs = Date.now()
      for (const [i] of members.entries()) await until(async () => code(await chat(i, token, run)) === 'ok')
      expect(Date.now() - atMs).toBeLessThan(1_000)
      // Two of the six stay for the time after the end, so that processes have idle slices of it.
      expect(code(await chat(0, token, run))).toBe('ok')
      expect(fleet.upstream.requests).toHaveLength(3 + 4)
      const endMs = Date.parse(granted.json.request.until)
      await until(async () => {
        const budgets = await call(member(0), token, 'GET', '/v1/me/budgets')
        const ofRun = await call(member(0), fleet.key, 'GET', `/v1/me/runs/shared?agent_id=${agent.id}`)
        return (run === null ? budgets.json.budgets[0]?.increase_inr : ofRun.json.increase_inr) === undefined
      }, 30_000)
      expect(Date.now()).toBeGreaterThanOrEqual(endMs)
      const after = countReplies(await Promise.all(times(12).map(i => chat(i, token, run))))
      expect(after['200']).toBeUndefined()
      expect(fleet.upstream.requests).toHaveLength(3 + 4)
      // A cap that is raised later counts from the whole spend, so nothing below zero was kept.
      const raised =
        run === null
          ? await call(member(2), fleet.key, 'POST', `/v1/me/agents/${agent.id}/budget`, { monthly_budget_inr: inr(9) })
          : await call(member(2), fleet.key, 'PATCH', `/v1/me/runs/shared?agent_id=${agent.id}`, { max_cost_inr: inr(9) })
      expect(raised.status).toBe(200)
      await until(async () => code(await chat(0, token, run)) === 'ok')
      expect((await used()) + 1).toBe(2)
      await until(async () => (await fleet.leasesOf('agent', agent.id)).every(({ amount }) => amount === 0n))
      expect(await fleet.violations()).toEqual([])
    },
  )
})
