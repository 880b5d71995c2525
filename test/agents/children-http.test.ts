import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply, until } from '../harness/app.ts'
import { familyOf, type Member, newName, said } from './family.ts'

const everything = 'inference memory:read memory:write usage:read tools:call'
const manyChildren = statement<[orgId: number, parentId: number, count: number]>(
  'test.many_children',
  `insert into agents (org_id, name, created_at, parent_id, depth)
   select $1::int, 'one of many ' || n, now(), $2::int, 1 from generate_series(1, $3::int) as n`,
)

describe('children of agents', () => {
  let app: TestApp
  let family: ReturnType<typeof familyOf>
  beforeAll(async () => {
    app = await startApp()
    family = familyOf(app)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const sorted = (replies: readonly TestReply[]) => replies.map(({ status }) => status).sort((a, b) => a - b)

  test('an agent that may delegate creates a child with its own token, and gets the child and a token for it', async () => {
    const parent = await family.lead()
    const name = newName('helper')
    const reply = await family.child(parent, { name: `  ${name} ` })
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([201, 'no-store'])
    const { agent, access_token: token, ...rest } = reply.json
    expect(agent).toMatchObject({ name, status: 'active', parent_id: parent.id, depth: 1, may_delegate: false, monthly_budget_inr: null, spend_month_inr: 0 })
    expect(rest).toMatchObject({ token, token_type: 'Bearer', expires_in: 900, agent_id: agent.id, scope: everything })
    expect(decodeJwt(token)).toMatchObject({ sub: `agent:${agent.id}`, act: { sub: `agent:${parent.id}` }, agent: { ancestors: [parent.id] } })
    expect((await family.chat(token)).status).toBe(200)
    expect(await family.listed(agent.id)).toMatchObject({ parent_id: parent.id, depth: 1, held_inr: 0, in_doubt_inr: 0 })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token })).json.agent).toEqual({ id: agent.id, name })
  })

  test('creating a child again returns the same child with a new token. Omitted fields stay the same, and rights only shrink', async () => {
    const parent = await family.lead()
    const name = newName('worker')
    const rules = { allowed_models: ['alpha-only', 'test-model'], max_output_tokens: 200, max_concurrency: 5, may_delegate: true }
    const first = await family.child(parent, { name, ...rules })
    const again = await family.child(parent, { name })
    expect([again.status, again.json.agent]).toEqual([200, first.json.agent])
    for (const { json } of [first, again]) expect((await family.chat(json.access_token)).status).toBe(200)
    const narrower = await family.child(parent, { name, allowed_models: ['alpha-only'], max_output_tokens: 100, max_cost_inr_per_call: 1, may_delegate: false })
    expect(narrower.json.agent).toMatchObject({
      allowed_models: ['alpha-only'],
      max_output_tokens: 100,
      max_cost_inr_per_call: 1,
      max_concurrency: 5,
      may_delegate: false,
    })
    for (const looser of [
      { allowed_models: null },
      { allowed_models: ['test-model'] },
      { max_output_tokens: 101 },
      { max_output_tokens: null },
      { max_concurrency: 6 },
      { may_delegate: true },
    ]) {
      const refused = await family.child(parent, { name, ...looser })
      expect(said(refused), JSON.stringify(looser)).toEqual([403, 'forbidden'])
      expect(refused.json.error.message).toContain(Object.keys(looser)[0])
    }
    // The calls above change these meanwhile.
    const { spend_month_inr: _spent, held_inr: _held, last_call_at: _called, ...kept } = narrower.json.agent
    expect(await family.listed(kept.id)).toMatchObject(kept)
  })

  test('only an agent that may delegate creates children, and only below itself. The refusal says how to change that', async () => {
    const plain = await app.newAgent(newName('plain'))
    const refused = await family.child(plain)
    expect(said(refused)).toEqual([403, 'forbidden'])
    expect(refused.json.error.message).toContain(`PATCH /v1/me/agents/${plain.id}`)
    expect(refused.json.error.message).toContain('may_delegate')
    const parent = await family.lead()
    const stranger = await app.otherOrg(newName('Elsewhere'))
    const foreign = (await app.call('POST', '/v1/me/agents', { name: 'theirs', may_delegate: true }, { token: stranger.key })).json.id
    for (const id of [plain.id, foreign, 999_999]) expect(said(await family.child({ id, token: parent.token }))).toEqual([403, 'forbidden'])
    const inference = await app.newKey({ scope: 'inference' })
    for (const token of [app.key, inference.key, stranger.key]) expect(said(await family.child({ id: parent.id, token }))).toEqual([403, 'forbidden'])
    // The permission is checked again at every call, for all agents above too.
    const middle = await family.born(parent, { may_delegate: true })
    await family.born(middle)
    await family.patch(parent.id, { may_delegate: false })
    for (const member of [parent, middle]) {
      const { status, json } = await family.child(member)
      expect([status, json.error.message]).toEqual([403, expect.stringContaining(`Agent ${parent.id} may not delegate`)])
    }
  })

  test('a family has at most three generations of children, and a token contains the chain of actors', async () => {
    const members = [await family.lead()]
    for (const _generation of [1, 2, 3]) members.push(await family.born(members.at(-1) as Member, { may_delegate: true }))
    const [top, first, second, third] = members as [Member, Member, Member, Member]
    expect(decodeJwt(third.token)['act']).toEqual({ sub: `agent:${second.id}`, act: { sub: `agent:${first.id}`, act: { sub: `agent:${top.id}` } } })
    expect(await family.listed(third.id)).toMatchObject({ parent_id: second.id, depth: 3 })
    const refused = await family.child(third)
    expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining('generation 3')])
    expect((await family.chat(third.token)).status).toBe(200)
    // A token that a full key mints for a child contains the same chain.
    expect(decodeJwt((await family.mint(third.id)).json.access_token)['act']).toEqual(decodeJwt(third.token)['act'])
  })

  test("the scopes and the life of a child's token cannot exceed those of its parent's token", async () => {
    const { id } = await family.lead()
    const narrow = { id, token: (await family.mint(id, { scope: 'usage:read inference' })).json.access_token }
    const given = await family.child(narrow)
    expect([given.status, given.json.scope]).toEqual([201, 'inference usage:read'])
    expect((await family.child(narrow, { scope: 'inference', ttl_s: 60 })).json).toMatchObject({ scope: 'inference', expires_in: 60 })
    for (const scope of ['memory:read', everything]) expect(said(await family.child(narrow, { scope }))).toEqual([403, 'forbidden'])
    for (const wrong of [{ scope: '' }, { scope: 'everything' }, { scope: ['inference'] }, { ttl_s: 0 }, { ttl_s: 901 }, { ttl_s: 1.5 }, { ttl_s: '60' }])
      expect(said(await family.child(narrow, wrong)), JSON.stringify(wrong)).toEqual([400, 'bad_request'])
    const { json } = await family.child(narrow, { scope: 'usage:read' })
    expect(said(await family.chat(json.access_token))).toEqual([403, 'forbidden'])
  })

  test("the limits of the key that minted the parent's token apply to the child, and the end of the key ends the child's token", async () => {
    const { id } = await family.lead()
    const minting = await app.newKey({ daily: 2 })
    const parent = { id, token: (await family.mint(id, {}, minting.key)).json.access_token }
    const { token } = await family.born(parent)
    for (const member of [parent.token, token]) expect((await family.chat(member)).status).toBe(200)
    for (const member of [parent.token, token]) expect(said(await family.chat(member))).toEqual([429, 'daily_limit_reached'])
    await app.gateway.app.keys.revoke(app.orgId, minting.keyId)
    const dead = await family.chat(token)
    expect([...said(dead), dead.json.reason]).toEqual([401, 'invalid_api_key', 'key_revoked'])
  })

  test('the rules of a child stay within those of all agents above it', async () => {
    const top = await family.lead(null, { allowed_models: ['alpha-only', 'test-model'], max_output_tokens: 100, max_cost_inr_per_call: 1 })
    const middle = await family.born(top, { may_delegate: true, allowed_models: ['alpha-only'], max_concurrency: 3 })
    for (const wide of [{ allowed_models: ['test-model'] }, { max_output_tokens: 101 }, { max_cost_inr_per_call: 1.000001 }, { max_concurrency: 4 }]) {
      const refused = await family.child(middle, wide)
      expect([...said(refused), refused.json.error.message], JSON.stringify(wide)).toEqual([
        403,
        'forbidden',
        expect.stringContaining(Object.keys(wide)[0] ?? ''),
      ])
    }
    const within = { allowed_models: ['alpha-only'], max_output_tokens: 100, max_cost_inr_per_call: 1, max_concurrency: 3, allowed_providers: ['alpha'] }
    expect((await family.child(middle, within)).json.agent).toMatchObject(within)
    expect((await family.child(middle)).json.agent).toMatchObject({ allowed_models: null, max_output_tokens: null })
  })

  test('a rule of an agent applies to the next call of every agent below it, by token and by id, until the rule is removed', async () => {
    const top = await family.lead()
    const middle = await family.born(top, { may_delegate: true })
    const lowest = await family.born(middle)
    const ways = [() => family.chat(lowest.token), () => family.chat(app.key, {}, { 'x-br-agent-id': String(lowest.id) })]
    for (const above of [top, middle])
      for (const [rule, code] of [
        [{ max_output_tokens: 40 }, 'call_cap_exceeded'],
        [{ allowed_models: ['test-model'] }, 'model_not_allowed'],
        [{ allowed_providers: ['beta'] }, 'model_not_allowed'],
        [{ max_cost_inr_per_call: 0.000001 }, 'call_cap_exceeded'],
      ] as const) {
        expect((await family.patch(above.id, rule)).status).toBe(200)
        for (const way of ways) expect(said(await way()), JSON.stringify(rule)).toEqual([403, code])
        await family.patch(above.id, { max_output_tokens: null, allowed_models: null, allowed_providers: null, max_cost_inr_per_call: null })
        for (const way of ways) expect((await way()).status).toBe(200)
      }
  })

  test('concurrent calls of a child also count as concurrent calls of all agents above it', async () => {
    const top = await family.lead(null, { max_concurrency: 1 })
    const middle = await family.born(top, { may_delegate: true })
    const lowest = await family.born(middle)
    app.alpha.hold()
    const running = family.chat(lowest.token)
    await until(() => app.alpha.requests.length === 1)
    for (const { token } of [top, middle, lowest]) {
      const refused = await family.chat(token)
      expect([...said(refused), refused.json.scope]).toEqual([429, 'concurrency_limit_reached', 'agent'])
    }
    app.alpha.release()
    expect((await running).status).toBe(200)
    await until(async () => (await family.chat(top.token)).status === 200)
  })

  test('a child cannot take the name of another agent, and the name of a revoked child creates a new child', async () => {
    const parent = await family.lead()
    const sibling = await family.lead()
    const name = newName('wanted')
    const outsider = await app.newAgent(name)
    const cousin = newName('cousin')
    await family.born(sibling, { name: cousin })
    const middle = await family.born(parent, { may_delegate: true })
    const grandchild = newName('grandchild')
    await family.born(middle, { name: grandchild })
    const { name: own } = await family.listed(parent.id)
    const before = await family.listed(outsider.id)
    for (const taken of [name, cousin, grandchild, own])
      expect(said(await family.child(parent, { name: taken, max_output_tokens: 1 }))).toEqual([409, 'agent_name_taken'])
    expect(await family.listed(outsider.id)).toEqual(before)
    const mine = newName('mine')
    const first = await family.born(parent, { name: mine })
    await family.revoke(first.id)
    const second = await family.child(parent, { name: mine })
    expect([second.status, second.json.agent.id === first.id]).toEqual([201, false])
    expect((await family.chat(first.token)).status).toBe(401)
  })

  test('an invalid request is refused and creates no agent', async () => {
    const parent = await family.lead()
    for (const name of ['', '  ', 'x'.repeat(101), 'a\nb']) expect(said(await family.child(parent, { name }))).toEqual([400, 'bad_name'])
    for (const wrong of [
      { name: 5 },
      { name: undefined },
      { monthly_budget_inr: -1 },
      { monthly_budget_inr: '5' },
      { monthly_budget_inr: 1e300 },
      { allowed_models: [] },
      { max_concurrency: 0 },
    ])
      expect(said(await family.child(parent, wrong)), JSON.stringify(wrong)).toEqual([400, 'bad_request'])
    expect(said(await family.child({ ...parent, id: 0 }))).toEqual([404, 'not_found'])
    const { agents } = (await app.call('GET', '/v1/me/agents')).json
    expect(agents.filter((agent: { parent_id: number | null }) => agent.parent_id === parent.id)).toEqual([])
  })

  test('an agent has at most 1,000 active children', async () => {
    const parent = await family.lead()
    await app.db.exec(manyChildren, app.orgId, parent.id, 999)
    await family.born(parent)
    const refused = await family.child(parent)
    expect([...said(refused), refused.json.error.message]).toEqual([400, 'cap', expect.stringContaining('1000 active children')])
    const again = await family.child(parent, { name: 'one of many 7' })
    expect(again.status).toBe(200)
    await family.revoke(again.json.agent.id)
    expect((await family.child(parent)).status).toBe(201)
    await family.revoke(parent.id)
  })

  test('usage of a child has a row of its own. The audit trail names the agent that created a child, and an agent whose request was refused', async () => {
    const parent = await family.lead()
    const name = newName('counted')
    const { id, token } = await family.born(parent, { name })
    expect((await family.chat(token)).status).toBe(200)
    expect(said(await family.child({ id: parent.id, token }))).toEqual([403, 'forbidden'])
    const { by_agent } = (await app.call('GET', '/v1/usage')).json
    expect(by_agent.find((row: { id: number }) => row.id === id)).toMatchObject({ id, name, requests: 1 })
    const { entries } = (await app.call('GET', '/me/audit?limit=50', undefined, { cookie: await app.signIn() })).json
    const lines = entries.filter((line: { act: string; target: string }) => line.act === 'createChildAgent' && line.target === `id=${parent.id}`)
    expect(lines.map((line: { outcome: string }) => line.outcome).sort()).toEqual(['forbidden', 'ok'])
  })

  test('a child that is created during a revocation of its parent is revoked too', async () => {
    for (let round = 0; round < 6; round++) {
      const top = await family.lead()
      const middle = await family.born(top, { may_delegate: true })
      const makers = Array.from({ length: 4 }, (_, i) => family.child(i % 2 === 0 ? top : middle))
      const [revoked, ...replies] = await Promise.all([family.revoke(top.id), ...makers])
      expect(revoked.json.status).toBe('revoked')
      expect(sorted(replies).every(status => [201, 401, 409].includes(status))).toBe(true)
      const { agents } = (await app.call('GET', '/v1/me/agents')).json
      const below = agents.filter((agent: { parent_id: number | null }) => agent.parent_id === top.id || agent.parent_id === middle.id)
      expect(below.filter((agent: { status: string }) => agent.status === 'active')).toEqual([])
      for (const { status, json } of replies) if (status === 201) expect(said(await family.chat(json.access_token))).toEqual([401, 'invalid_api_key'])
    }
  })

  test('concurrent creates of a child with one name create one child', async () => {
    const parent = await family.lead()
    const name = newName('crowded')
    const replies = await Promise.all(Array.from({ length: 12 }, () => family.child(parent, { name })))
    expect(sorted(replies)).toEqual([...Array.from({ length: 11 }, () => 200), 201])
    expect(new Set(replies.map(reply => reply.json.agent.id)).size).toBe(1)
  })
})
