import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'

const dayMs = 24 * 3600 * 1000
const lines = statement<[], { line: string }>('test.audit_lines', 'select l::text as "line" from audit_log l order by id')

describe('the audit trail', () => {
  let app: TestApp
  let clock: MovableClock
  let owner: string
  beforeAll(async () => {
    clock = movableClock()
    app = await startApp({ clock, env: { TRUSTED_PROXIES: '127.0.0.1', FOLDER_STORE: 'on' } })
    owner = await app.signIn()
  })
  afterAll(() => app.stop())

  const from = { 'x-forwarded-for': '198.51.100.77' }
  const entries = async (query = '', cookie = owner) => {
    const reply = await app.call('GET', `/me/audit${query}`, undefined, { cookie })
    expect(reply.status).toBe(200)
    return reply.json.entries
  }
  const count = async (): Promise<number> => (await app.db.many(lines)).length

  test('an audit line names the object in the reply, also when the object is next to `ok`', async () => {
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: app.keyId, monthly_budget_inr: 500 }, { cookie: owner })
    await app.call('POST', '/me/orgs/switch', { org_id: app.orgId }, { cookie: owner })
    expect((await entries('?limit=2')).map((each: { act: string; target: string }) => [each.act, each.target])).toEqual([
      ['switchOrg', `id=${app.orgId}`],
      ['setOrgBudget', `key=${app.keyId}`],
    ])
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: app.keyId, monthly_budget_inr: null }, { cookie: owner })
  })

  test('AUDIT-01 an act leaves one line: who, what, to what, from where, when, and with which outcome', async () => {
    const before = await count()
    const made = await app.call('POST', '/v1/me/agents', { name: 'auditor-test' }, { headers: from })
    expect(made.status).toBe(201)
    expect(await count()).toBe(before + 1)
    const [entry] = await entries()
    expect(entry).toEqual({
      id: expect.any(Number),
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      actor: { kind: 'key', id: app.keyId, name: 'owner key' },
      act: 'createAgent',
      target: `id=${made.json.id}`,
      source_ip: '198.51.100.77',
      request_id: made.headers.get('x-request-id'),
      outcome: 'ok',
    })
    expect(Math.abs(Date.parse(entry.at) - clock.nowMs())).toBeLessThan(10_000)
    await app.call('POST', `/v1/me/agents/${made.json.id}/budget`, { monthly_budget_inr: 5 })
    await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {})
    await app.call('POST', `/v1/me/agents/999999/revoke`)
    await app.call('PUT', '/me/memory-store', { store: 'folder' }, { cookie: owner })
    expect(
      (await entries('?limit=4')).map((each: { act: string; target: string; outcome: string; actor: object }) => [
        each.act,
        each.target,
        each.outcome,
        each.actor,
      ]),
    ).toEqual([
      ['putStoreConsole', null, 'ok', { kind: 'user', id: app.userId, name: 'owner@test-org.test' }],
      ['revokeAgent', 'id=999999', 'not_found', { kind: 'key', id: app.keyId, name: 'owner key' }],
      ['mintAgentToken', `id=${made.json.id}`, 'ok', { kind: 'key', id: app.keyId, name: 'owner key' }],
      ['setAgentBudget', `id=${made.json.id}`, 'ok', { kind: 'key', id: app.keyId, name: 'owner key' }],
    ])
  })

  test('AUDIT-01 reads, inference, memory data and requests with an invalid form or credential leave no line', async () => {
    const before = await count()
    await app.call('PUT', '/me/memory-store', { store: 'folder' }, { cookie: owner })
    expect(await count()).toBe(before + 1)
    await app.call('GET', '/v1/me/agents')
    await app.call('GET', '/me/audit', undefined, { cookie: owner })
    expect((await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200)
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents/a/notes.md', 'text')).status).toBe(200)
    expect((await app.call('DELETE', '/v1/me/memory/o?key=agents/a/notes.md')).status).toBe(200)
    expect((await app.call('POST', '/v1/me/agents', { name: 7 })).status).toBe(400)
    expect((await app.call('POST', '/v1/me/agents', { name: 'x' }, { token: null })).status).toBe(401)
    expect((await app.call('PUT', '/me/memory-store', {}, { token: null })).status).toBe(401)
    expect(await count()).toBe(before + 1)
  })

  test('AUDIT-01 an act that is refused for its role, scope, page or kind of credential leaves one line', async () => {
    const inference = await app.newKey({ scope: 'inference' })
    const agent = await app.newAgent('kept-out')
    const member = await app.newMember('member')
    const before = await count()
    expect((await app.call('POST', '/v1/me/agents', { name: 'y' }, { token: inference.key })).status).toBe(403)
    expect((await app.call('PUT', '/me/memory-store', {}, { cookie: member.cookie })).status).toBe(403)
    expect((await app.call('PUT', '/me/memory-store', {}, { token: agent.token })).status).toBe(403)
    expect((await app.call('PUT', '/me/memory-store', {}, { cookie: owner, headers: { origin: 'https://evil.test' } })).status).toBe(403)
    expect(await count()).toBe(before + 4)
    expect(
      (await entries('?limit=4')).map((each: { act: string; outcome: string; actor: { kind: string; id: number } }) => [
        each.act,
        each.outcome,
        each.actor.kind,
        each.actor.id,
      ]),
    ).toEqual([
      ['putStoreConsole', 'forbidden', 'user', app.userId],
      ['putStoreConsole', 'forbidden', 'agent', agent.id],
      ['putStoreConsole', 'forbidden', 'user', member.userId],
      ['createAgent', 'forbidden', 'key', inference.keyId],
    ])
  })

  test('AUDIT-01 owners, admins and holders of audit:view read the trail, and nobody else does', async () => {
    for (const [role, capabilities, status] of [
      ['owner', [], 200],
      ['admin', [], 200],
      ['member', ['audit:view'], 200],
      ['member', ['usage:org:view'], 403],
    ] as const) {
      const { cookie } = await app.newMember(role, { capabilities })
      const reply = await app.call('GET', '/me/audit', undefined, { cookie })
      expect([role, reply.status]).toEqual([role, status])
    }
    const agent = await app.newAgent('reader')
    expect((await app.call('GET', '/me/audit', undefined, { token: agent.token })).status).toBe(403)
    expect((await app.call('GET', '/me/audit')).status).toBe(401)
    const other = await app.otherOrg('Elsewhere')
    expect((await entries('', await app.signIn(other.userId, other.orgId))).length).toBe(0)
  })

  test('pages go back in time without a gap, and filters select lines', async () => {
    const { cookie } = await app.newMember('admin')
    for (let i = 0; i < 5; i++) await app.call('POST', '/v1/me/agents', { name: `paged-${i}` })
    const all = (await entries('?limit=200', cookie)).map((each: { id: number }) => each.id)
    const paged: number[] = []
    let before = ''
    for (let page = 0; page < 100; page++) {
      const { json } = await app.call('GET', `/me/audit?limit=3${before}`, undefined, { cookie })
      paged.push(...json.entries.map((each: { id: number }) => each.id))
      if (json.next_before === null) break
      before = `&before=${json.next_before}`
    }
    expect(paged).toEqual(all)
    expect(all).toEqual([...all].sort((a, b) => b - a))
    const of = async (query: string): Promise<Set<string>> =>
      new Set(
        (await entries(`?limit=200&${query}`, cookie)).map(
          (each: { act: string; actor: { kind: string; id: number } }) => `${each.act} ${each.actor.kind}:${each.actor.id}`,
        ),
      )
    expect([...(await of(`act=createAgent&actor=key:${app.keyId}`))]).toEqual([`createAgent key:${app.keyId}`])
    expect([...(await of('actor=user'))].every(each => each.includes(' user:'))).toBe(true)
    expect((await of('actor=user')).size).toBeGreaterThan(0)
    expect(await of('actor=operator')).toEqual(new Set())
    const now = clock.nowMs()
    expect((await of(`from=${new Date(now - 3600_000).toISOString()}`)).size).toBeGreaterThan(0)
    expect((await of(`to=${new Date(now - 3600_000).toISOString()}`)).size).toBe(0)
    expect((await of(`from=${new Date(now - dayMs).toISOString().slice(0, 10)}&to=${new Date(now + dayMs).toISOString().slice(0, 10)}`)).size).toBeGreaterThan(
      0,
    )
    expect((await of('from=2001-01-01&to=2001-01-02')).size).toBe(0)
    for (const bad of [
      'limit=0',
      'limit=201',
      'limit=x',
      'before=-1',
      'actor=robot',
      'actor=user:x',
      'from=yesterday',
      'to=2026-13-01',
      'from=2026-01-01T00:00:00',
    ])
      expect((await app.call('GET', `/me/audit?${bad}`, undefined, { cookie })).json.error.code, bad).toBe('bad_request')
  })

  test('AUDIT-01 no secret in a path, query, header or body of any endpoint gets into the trail', async () => {
    const secrets = [
      `br-${'aB3'.repeat(10)}x`,
      'sk-proj-abcdefghijklmnopqrstuvwxyz',
      'hunter2hunter2hunter2hunter2',
      'c0ffee'.repeat(6),
      'AKIAIOSFODNN7EXAMPLE',
    ]
    const writes = bindingsOf(endpointTable).filter(({ at, row }) => !at.startsWith('GET ') && row.inference !== true)
    expect(writes.length).toBeGreaterThan(5)
    for (const secret of secrets)
      for (const { at } of writes) {
        const [method = '', pattern = ''] = at.split(' ')
        const path = pattern.replace(/\{\w+\+?\}/g, encodeURIComponent(secret))
        const names = ['name', 'key', 'secret', 'secret_key', 'access_key', 'email', 'label', 'token', 'model', 'provider', 'slug', 'id', 'base_url', 'note']
        const body = Object.fromEntries(names.map(name => [name, secret]))
        const headers = { 'x-api-key': secret, 'x-br-agent-id': secret, 'x-request-id': secret, 'user-agent': secret, ...from }
        const credential = pattern.startsWith('/me') || pattern.startsWith('/auth') ? { cookie: await app.signIn() } : {}
        await fetchAny(method, `${path}?key=${secret}&token=${secret}`, body, headers, credential)
      }
    const trail = (await app.db.many(lines)).map(({ line }) => line).join('\n')
    for (const secret of [...secrets, app.key, owner.split('=')[1] ?? '']) expect(trail).not.toContain(secret)
    // One of the endpoints has ended all other sessions of the person.
    owner = await app.signIn()
    expect((await entries()).length).toBeGreaterThan(10)
  }, 60_000)

  /** This request bypasses the harness's check of replies, because other tests check the replies to invalid requests. */
  async function fetchAny(method: string, path: string, body: object, headers: Record<string, string>, { cookie }: { cookie?: string }): Promise<void> {
    const credential = cookie === undefined ? { authorization: `Bearer ${app.key}` } : { cookie }
    const reply = await fetch(app.baseUrl + path, {
      method,
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...headers, ...credential },
      body: JSON.stringify(body),
    })
    await reply.arrayBuffer()
  }

  test("the operator's commands are in the trail of the organisation, and a command lists them", async () => {
    const run = (name: string, args: Record<string, unknown>) => adminHandler(app.gateway.app)({ name, args })
    const created = (await run('create', { email: 'new@org.test', org: 'New Org' })) as { org_id: number; user_id: number; key_id: number }
    await run('budget', { org: created.org_id, scope: 'key', id: created.key_id, inr: 10 })
    await expect(run('revoke-key', { org: created.org_id, key: 999_999 })).rejects.toThrow('no such key')
    await run('doctor', {})
    const listed = (await run('audit', { org: created.org_id })) as { entries: { act: string; target: string; outcome: string; actor: object }[] }
    expect(listed.entries.map(each => [each.act, each.target, each.outcome, each.actor])).toEqual([
      ['revokeKey', 'key=999999', 'not_found', { kind: 'operator', id: null }],
      ['setBudget', `key=${created.key_id}`, 'ok', { kind: 'operator', id: null }],
      ['createOrg', `user=${created.user_id} key=${created.key_id}`, 'ok', { kind: 'operator', id: null }],
    ])
    const cookie = await app.signIn(created.user_id, created.org_id)
    expect((await entries('?actor=operator', cookie)).length).toBe(3)
    expect((await app.db.many(lines)).map(({ line }) => line).join()).not.toMatch(/new@org\.test|New Org/)
  })

  test('lines older than AUDIT_KEEP_DAYS are deleted', async () => {
    const { audit } = app.gateway.app
    expect(await audit.sweep()).toBe(0)
    const before = await count()
    clock.advance(401 * dayMs)
    await audit.record({ orgId: app.orgId, actor: 'system', act: 'keep', target: null, sourceIp: null, requestId: null }, 'ok')
    expect(await audit.sweep()).toBe(before)
    expect(await count()).toBe(1)
    clock.advance(-401 * dayMs)
  })
})

describe('when the audit trail cannot be written', () => {
  test('AUDIT-01 when the line of an act cannot be written, the act does not happen: 503 database_unavailable', async () => {
    const app = await startApp()
    try {
      await app.db.script('alter table audit_log rename to audit_log_away')
      const reply = await app.call('POST', '/v1/me/agents', { name: 'never' })
      expect([reply.status, reply.json.error.code]).toEqual([503, 'database_unavailable'])
      await app.db.script('alter table audit_log_away rename to audit_log')
      expect((await app.call('GET', '/v1/me/agents')).json.agents).toEqual([])
    } finally {
      await app.stop()
    }
  })

  test('a line of an act that never ended has outcome null', async () => {
    const app = await startApp()
    try {
      const owner = await app.signIn()
      // A process that dies during an act leaves such a line.
      await app.gateway.app.audit.begin({ orgId: app.orgId, actor: 'system', act: 'createAgent', target: null, sourceIp: null, requestId: 'req_x' })
      const { json } = await app.call('GET', '/me/audit', undefined, { cookie: owner })
      expect(json.entries[0]).toMatchObject({ act: 'createAgent', outcome: null })
    } finally {
      await app.stop()
    }
  })
})
