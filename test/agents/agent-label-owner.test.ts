/** A key that names an agent in x-br-agent-id charges that agent only if the key may act for it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { usageRows } from '../harness/usage-rows.ts'

describe('a key that names an agent', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  const chat = (token: string, label: string) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }] },
      { token, headers: { 'x-br-agent-id': label } },
    )
  const charged = async (token: string, label: string) => {
    expect((await chat(token, label)).status).toBe(200)
    const [row] = await usageRows(app)
    return [row?.agentId, row?.agentLabel]
  }

  test("an inference key of a member charges the member's own agents, and the name of another member's agent counts as an unverified label", async () => {
    const [ann, bob] = [await app.newMember('member'), await app.newMember('member')]
    let made = 0
    const keyOf = async ({ cookie }: { cookie: string }, scope: 'inference' | 'full') => {
      const reply = await app.call('POST', '/me/keys', { name: `key ${++made}`, scope }, { cookie })
      expect(reply.status, reply.text).toBeLessThan(300)
      return reply.json.key as string
    }
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'of-ann' }, { token: await keyOf(ann, 'full') })).json
    await app.setBudget('agent', agent.id, 100)
    for (const label of ['of-ann', String(agent.id)]) {
      expect(await charged(await keyOf(ann, 'inference'), label)).toEqual([agent.id, null])
      expect(await charged(await keyOf(bob, 'inference'), label)).toEqual([null, label])
      // A full key may charge the agent, because it could also mint a token of the agent.
      expect(await charged(await keyOf(bob, 'full'), label)).toEqual([agent.id, null])
    }
    const admin = await app.newMember('admin')
    expect(await charged(await keyOf(admin, 'inference'), 'of-ann')).toEqual([agent.id, null])
    // A call in the name of a revoked agent is refused, even when the key may not act for that agent.
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, undefined, { token: app.key })
    expect((await chat(await keyOf(bob, 'inference'), 'of-ann')).json.error.code).toBe('agent_revoked')
  })

  test("the name of an agent's child stays a label of keys, so an agent cannot take over a label in use; the child's id names the child", async () => {
    expect(await charged(app.key, 'checkout-prod')).toEqual([null, 'checkout-prod'])
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'helper', may_delegate: true })).json
    const token = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    const asHelper = (path: string, body?: object) => app.call('POST', `/v1/me/agents/${id}/children${path}`, body, { token })
    const made = await asHelper('', { name: 'checkout-prod', max_output_tokens: 1, monthly_budget_inr: 0.000001 })
    expect(made.status, made.text).toBe(201)
    const child = made.json.agent.id
    const unbound = async () => {
      expect(await charged(app.key, 'checkout-prod')).toEqual([null, 'checkout-prod'])
      expect(app.alpha.requests.at(-1)?.json).not.toHaveProperty('max_tokens')
    }
    const [sent, byId] = [app.alpha.requests.length, await chat(app.key, String(child))]
    if (byId.status === 200) expect(app.alpha.requests[sent]?.json).toMatchObject({ max_tokens: 1 })
    else expect(byId.json.error.code).toBe('agent_budget_exceeded')
    await unbound()
    expect((await asHelper(`/${child}/pause`)).status).toBe(200)
    await unbound()
    expect((await chat(app.key, String(child))).json.error.code).toBe('agent_paused')
    expect((await asHelper(`/${child}/revoke`)).status).toBe(200)
    await unbound()
    expect((await chat(app.key, String(child))).json.error.code).toBe('agent_revoked')
  })
})
