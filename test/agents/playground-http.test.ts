/** The playground agent of a person. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { newName, said } from './family.ts'

describe('the playground', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { PLAYGROUND_BUDGET_INR: '5' } })
  })
  afterAll(() => app.stop())

  const token = (cookie: string, body: object = {}) => app.call('POST', '/me/playground/token', body, { cookie })
  const chat = (credential: string, label?: string) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 },
      { token: credential, headers: label === undefined ? {} : { 'x-br-agent-id': label } },
    )
  const forbidden = [403, 'forbidden']

  test('CAPI-03 the playground gives a person a 15-minute token of an agent of their own with a small budget, made once, that nobody else uses and that ends with the membership', async () => {
    const person = await app.newMember('member')
    const first = await token(person.cookie)
    const { agent, access_token: mine } = first.json
    expect([first.status, first.headers.get('cache-control'), first.json]).toMatchObject([
      200,
      'no-store',
      { expires_in: 900, scope: 'inference', agent_id: agent.id },
    ])
    expect(agent).toMatchObject({ name: `Playground (${person.email.split('@')[0]})`, playground: true, owner_uid: person.userId, monthly_budget_inr: 5 })
    const called = await chat(mine)
    expect([called.status, called.headers.get('x-br-cost-inr') !== null]).toEqual([200, true])
    expect(
      (await app.call('GET', '/v1/me/budgets', undefined, { token: (await token(person.cookie, { scope: 'usage:read' })).json.access_token })).text,
    ).toContain('"agent"')
    expect((await token(person.cookie)).json.agent.id, 'found again').toBe(agent.id)
    const together = await Promise.all(Array.from({ length: 5 }, () => token(person.cookie)))
    expect(new Set(together.map(reply => reply.json.agent.id))).toEqual(new Set([agent.id]))

    const other = await app.newMember('member')
    const owner = await app.signIn()
    expect((await token(other.cookie)).json.agent.id).not.toBe(agent.id)
    // Not with a full key, a session of an owner, a label or a trust rule.
    expect(said(await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}))).toEqual(forbidden)
    expect(said(await app.call('POST', `/me/agents/${agent.id}/token`, { key_id: app.keyId }, { cookie: owner }))).toEqual(forbidden)
    const spent = async () => (await app.call('GET', `/v1/me/agents/${agent.id}`)).json.spend_month_inr
    await app.gateway.app.limits.flushNow()
    const before = await spent()
    expect((await chat(app.key, String(agent.id))).status, 'a mere label').toBe(200)
    await app.gateway.app.limits.flushNow()
    expect(await spent()).toBe(before)
    const rule = { name: newName(), issuer: 'https://issuer.example', subject: 'x', agent_id: agent.id, key_id: app.keyId }
    expect(said(await app.call('POST', '/me/agent-trust', rule, { cookie: owner }))).toEqual(forbidden)
    expect(said(await app.call('POST', `/me/agents/${agent.id}/children`, { name: newName() }, { cookie: person.cookie }))).toEqual(forbidden)
    expect(said(await app.call('PATCH', `/me/agents/${agent.id}`, { may_delegate: true }, { cookie: person.cookie }))).toEqual(forbidden)
    expect(said(await app.call('PATCH', `/me/agents/${agent.id}`, { owner_uid: other.userId }, { cookie: owner }))).toEqual(forbidden)

    expect((await app.call('DELETE', `/me/members/${person.userId}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await chat(mine)).status).toBe(401)
    expect((await token(person.cookie)).status).toBe(401)
    expect((await app.call('GET', `/v1/me/agents/${agent.id}`)).json.status).toBe('revoked')
  })

  test('a membership that ends while the playground is made leaves no agent and no key', async () => {
    const owner = await app.signIn()
    for (let round = 0; round < 5; round++) {
      const person = await app.newMember('member')
      const [made] = await Promise.all([token(person.cookie), app.call('DELETE', `/me/members/${person.userId}`, undefined, { cookie: owner })])
      expect([200, 401, 403], made.text).toContain(made.status)
      const left = await app.call('GET', `/me/agents?state=active&owner=${person.userId}`, undefined, { cookie: owner })
      expect(left.json.agents, `round ${round}: ${made.status}`).toEqual([])
      const keys = await app.call('GET', `/me/keys?owner=${person.userId}`, undefined, { cookie: owner })
      expect(keys.json.keys).toEqual([])
    }
  })

  test('only a cookie session gets a token of a playground', async () => {
    for (const credential of [app.key, (await app.newAgent(newName())).token, null]) {
      const reply = await app.call('POST', '/me/playground/token', {}, { token: credential })
      expect([401, 403]).toContain(reply.status)
    }
    const foreign = await app.call('POST', '/me/playground/token', {}, { cookie: await app.signIn(), headers: { origin: 'https://evil.example' } })
    expect(foreign.status).toBe(403)
    expect(said(await token(await app.signIn(), { scope: 'everything' }))).toEqual([400, 'bad_request'])
    expect(said(await token(await app.signIn(), { ttl_s: 9000 }))).toEqual([400, 'bad_request'])
  })

  test('a playground whose name is taken gets another name, one whose key was ended gets another key, and a disabled key stops it', async () => {
    const person = await app.newMember('member')
    const taken = `Playground (${person.email.split('@')[0]})`
    await app.call('POST', '/v1/me/agents', { name: taken })
    const { agent, access_token: first } = (await token(person.cookie)).json
    expect(agent.name).toBe(`Playground (${person.email.split('@')[0]}, ${person.userId})`)
    const owner = await app.signIn()
    const keyOf = async () =>
      (await app.call('GET', '/me/keys', undefined, { cookie: owner })).json.keys.find((key: { name: string }) => key.name === agent.name)
    const key = await keyOf()
    expect(key).toMatchObject({ scope: 'inference', owner: { uid: person.userId }, lifecycle_pin: 'keep' })
    expect((await app.call('DELETE', `/me/keys/${key.id}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await chat(first)).status).toBe(401)
    const again = (await token(person.cookie)).json
    expect(again.agent.id).toBe(agent.id)
    expect((await chat(again.access_token)).status).toBe(200)
    await app.call('PATCH', `/me/keys/${(await keyOf()).id}`, { enabled: false }, { cookie: owner })
    expect(said(await token(person.cookie))).toEqual(forbidden)
    await app.call('PATCH', `/me/keys/${(await keyOf()).id}`, { enabled: true }, { cookie: owner })
    expect((await token(person.cookie)).status).toBe(200)
    await app.call('POST', `/me/agents/${agent.id}/pause`, undefined, { cookie: owner })
    expect(said(await chat((await token(person.cookie)).json.access_token)), 'an admin pauses it like every agent').toEqual([403, 'agent_paused'])
    await app.call('POST', `/me/agents/${agent.id}/revoke`, undefined, { cookie: owner })
    const next = (await token(person.cookie)).json
    expect(next.agent.id).not.toBe(agent.id)
    expect(said(await chat(again.access_token))[0]).toBe(401)
  })
})
