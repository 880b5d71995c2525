/** What operators see and change at the console, and that these paths do not exist for others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { admin, operatorCalls, seen, signInByLink } from './operators.ts'

const giveUpMails = statement<[address: string]>(
  'test.give_up_mails',
  `update emails set due_at = null, failed_at = now(), attempts = 6, last_error = 'EENVELOPE 550 RCPT TO' where to_address = $1::text`,
)
const delayMails = statement<[address: string]>(
  'test.delay_mails',
  `update emails set due_at = now() + interval '5 minutes', attempts = 2, last_error = 'ETIMEDOUT CONN' where to_address = $1::text`,
)
const hello = [{ role: 'user', content: 'Hello' }]

describe('CAPI-11 operators at the console', () => {
  let app: TestApp
  let operator: string
  let owner: string
  beforeAll(async () => {
    app = await startApp({ env: { OPERATOR_EMAILS: ' OPS@platform.test , root@platform.test', OUTBOUND_ALLOW: '127.0.0.1:1', WEBHOOK_POLL_MS: '600000' } })
    await admin(app, 'create', { email: 'ops@platform.test', org: 'Platform' })
    operator = await signInByLink(app, 'ops@platform.test')
    owner = await signInByLink(app, 'owner@test-org.test')
  })
  afterAll(() => app.stop())

  const call = (method: string, path: string, body?: object, cookie = operator) => app.call(method, path, body, { cookie })
  async function read(path: string) {
    const reply = await call('GET', path)
    expect(reply.status, reply.text).toBe(200)
    return reply.json
  }

  test('GET /me says who is an operator', async () => {
    expect((await read('/me')).is_operator).toBe(true)
    expect((await call('GET', '/me', undefined, owner)).json.is_operator).toBe(false)
    const agent = await app.newAgent('curious')
    expect((await app.call('GET', '/me', undefined, { token: agent.token })).json.is_operator).toBe(false)
  })

  test('the calls of this test are all rows for operators', () => {
    const rows = bindingsOf(endpointTable).filter(({ at }) => at.includes('/me/operator'))
    expect(rows.every(({ auth, access }) => auth === 'session' && access.operator === true)).toBe(true)
    expect(operatorCalls.map(([method]) => method).sort()).toEqual(rows.map(({ at }) => at.split(' ')[0]).sort())
  })

  test('for an owner, an admin and a member every path has the reply of an unknown path, and so has a wrong method', async () => {
    const admins = [owner, (await app.newMember('admin')).cookie, (await app.newMember('member')).cookie]
    for (const cookie of admins) {
      const unknown = seen(await call('GET', '/me/operator/nothing-here', undefined, cookie))
      expect(unknown[0]).toBe(404)
      for (const [method, path, body] of operatorCalls) expect(seen(await call(method, path, body, cookie)), `${method} ${path}`).toEqual(unknown)
      expect(seen(await call('PATCH', '/me/operator/doctor', {}, cookie))).toEqual(unknown)
      expect(seen(await call('PUT', '/me/operator/maintenance/alpha/test-model', { nonsense: true }, cookie))).toEqual(unknown)
    }
    expect((await read('/me/operator/maintenance')).withheld).toEqual([])
  })

  test('a key and a request without a credential get 401, and an agent token gets the reply of an unknown path', async () => {
    const { token } = await app.newAgent('worker')
    const unknown = seen(await app.call('GET', '/me/operator/nothing-here', undefined, { token }))
    for (const [method, path, body] of operatorCalls) {
      for (const other of [app.key, (await app.newKey({ scope: 'inference' })).key, null])
        expect((await app.call(method, path, body, { token: other })).json.error.code, path).toBe('no_session')
      expect(seen(await app.call(method, path, body, { token })), path).toEqual(unknown)
    }
    const key = (await call('POST', '/me/keys', { name: 'of the operator' })).json.key
    expect((await app.call('GET', '/me/operator/doctor', undefined, { token: key })).status).toBe(401)
  })

  test('a session whose sign-in did not prove the listed address gets the reply of an unknown path', async () => {
    const { user, org } = await read('/me')
    const unproven = await app.signIn(user.id, org.id)
    expect((await call('GET', '/me', undefined, unproven)).json).toMatchObject({ email: 'ops@platform.test', is_operator: false })
    const unknown = seen(await call('GET', '/me/operator/nothing-here', undefined, unproven))
    for (const [method, path, body] of operatorCalls) expect(seen(await call(method, path, body, unproven)), path).toEqual(unknown)
  })

  test('without OPERATOR_EMAILS nobody is an operator', async () => {
    const other = await startApp()
    try {
      const cookie = await signInByLink(other, 'owner@test-org.test')
      expect((await other.call('GET', '/me', undefined, { cookie })).json.is_operator).toBe(false)
      const unknown = seen(await other.call('GET', '/me/operator/nothing-here', undefined, { cookie }))
      for (const [method, path, body] of operatorCalls) expect(seen(await other.call(method, path, body, { cookie })), path).toEqual(unknown)
    } finally {
      await other.stop()
    }
  })

  test('a page of another site changes nothing with the cookie of an operator', async () => {
    const reply = await app.call(
      'PUT',
      '/me/operator/maintenance/alpha/test-model',
      { for_s: 60 },
      { cookie: operator, headers: { origin: 'https://evil.test' } },
    )
    expect([reply.status, reply.json.error.code]).toEqual([403, 'forbidden'])
    const ofOther = await app.call(
      'PUT',
      '/me/operator/maintenance/alpha/test-model',
      { for_s: 60 },
      { cookie: owner, headers: { origin: 'https://evil.test' } },
    )
    expect(ofOther.status).toBe(404)
    expect((await read('/me/operator/maintenance')).withheld).toEqual([])
    const { entries } = await admin(app, 'audit')
    expect(
      entries.filter((entry: { act: string; outcome: string }) => entry.act === 'setMaintenance').map((entry: { outcome: string }) => entry.outcome),
    ).toEqual(['forbidden'])
  })

  test('the doctor has the findings of the command line and no secret, and requests at the same time share one run', async () => {
    const [one, two] = await Promise.all([read('/me/operator/doctor'), read('/me/operator/doctor')])
    expect(two.checked_at).toBe(one.checked_at)
    const whats = (findings: readonly { what: string }[]) => findings.map(({ what }) => what)
    expect(whats(one.findings)).toEqual(whats(await admin(app, 'doctor')))
    expect(whats(one.findings)).toEqual(expect.arrayContaining(['configuration', 'database', 'money', 'providers', 'mail', 'memory stores']))
    expect(one.state).toBe(one.findings.some((finding: { state: string }) => finding.state === 'wrong') ? 'wrong' : one.state)
    expect(JSON.stringify(one)).not.toMatch(/platform-secret|rzp-secret/)
  })

  test('organisations have sums of the span and no name of an agent, a key, a workspace or a person', async () => {
    const quiet = await app.otherOrg('Quiet Harbour')
    await app.newAgent('secret-agent-name')
    await app.newKey({ name: 'secret-key-name' })
    const member = await app.newMember('member')
    for (let n = 0; n < 2; n++) expect((await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello })).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const { organisations, from, to, next_cursor } = await read('/me/operator/organisations')
    expect(next_cursor).toBeNull()
    expect(Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000)).toBe(29)
    expect(organisations.map((each: { id: number }) => each.id)).toEqual([...organisations.map((each: { id: number }) => each.id)].sort((a, b) => b - a))
    const byId = (id: number) => organisations.find((each: { id: number }) => each.id === id)
    expect(Object.keys(byId(app.orgId)).sort()).toEqual(
      ['calls', 'cost_inr', 'created_at', 'errors', 'id', 'kind', 'member_count', 'name', 'state', 'value_inr'].sort(),
    )
    expect(byId(app.orgId)).toMatchObject({ name: 'Test Org', kind: 'team', calls: 2, errors: 0, state: 'active' })
    expect(byId(app.orgId).value_inr).toBeGreaterThan(0)
    expect(byId(app.orgId).member_count).toBeGreaterThan(1)
    expect(byId(quiet.orgId)).toMatchObject({ name: 'Quiet Harbour', member_count: 1, calls: 0, cost_inr: 0, value_inr: 0, state: 'idle' })
    expect(JSON.stringify(organisations)).not.toMatch(new RegExp(`secret-agent-name|secret-key-name|${member.email}|@`))
  })

  test('organisations are searched, sorted and paged by the server', async () => {
    for (const name of ['Alder', 'Birch', 'Cedar %', 'birch two']) await admin(app, 'create', { org: name, email: 'founder@forest.test' })
    const names = async (query: string): Promise<string[]> => {
      const found: string[] = []
      let cursor: string | null = null
      do {
        const page = await read(`/me/operator/organisations?limit=2&${query}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)
        expect(page.organisations.length).toBeLessThanOrEqual(2)
        found.push(...page.organisations.map((each: { name: string }) => each.name))
        cursor = page.next_cursor
      } while (cursor !== null)
      return found
    }
    const sorted = await names('sort=name')
    expect(sorted).toEqual([...sorted].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)))
    expect(sorted).toEqual(expect.arrayContaining(['Alder', 'Birch', 'birch two', 'Cedar %', 'Platform', 'Test Org']))
    expect(await names('sort=oldest')).toEqual((await names('sort=newest')).reverse())
    expect(await names('q=BIRCH&sort=oldest')).toEqual(['Birch', 'birch two'])
    expect(await names('q=%25')).toEqual(['Cedar %'])
    expect(await names(`q=${app.orgId}`)).toContain('Test Org')
    expect(await names('q=nobody%20has%20this')).toEqual([])
    const cursor = (await read('/me/operator/organisations?limit=2&sort=name')).next_cursor
    for (const query of [`sort=oldest&cursor=${cursor}`, 'cursor=nonsense', 'limit=0', 'limit=101', 'days=32', 'sort=members', `q=${'x'.repeat(101)}`])
      expect((await call('GET', `/me/operator/organisations?${query}`)).json.error.code, query).toBe('bad_request')
  })

  test('a quarantine takes a route out of use and its release restores it, and both are in the trail of the installation with the person', async () => {
    const route = '/me/operator/maintenance/alpha/test-model'
    const providerOfCall = async () => (await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello })).headers.get('x-br-provider')
    const made = await call('PUT', route, { for_s: 600 })
    const { ok, ...withheld } = made.json
    expect(ok).toBe(true)
    expect(withheld).toMatchObject({ route: 'alpha/test-model', maintenance: true, set_by: 'operator' })
    expect(Date.parse(made.json.until) - Date.parse(made.json.since)).toBe(600_000)
    expect((await read('/me/operator/maintenance')).withheld).toEqual([withheld])
    expect(await admin(app, 'maintenance')).toEqual({ withheld: [withheld] })
    expect(await providerOfCall()).toBe('beta')
    expect((await call('DELETE', route)).json).toEqual({ ok: true, route: 'alpha/test-model', maintenance: false })
    expect(await providerOfCall()).toBe('alpha')
    expect((await call('DELETE', route)).json.error.message).toContain('is not withheld')
    expect((await call('PUT', '/me/operator/maintenance/alpha/nothing', { for_s: 60 })).json.error.message).toContain('There is no route')
    for (const body of [{}, { for_s: 0 }, { for_s: 30 * 86_400 + 1 }, { for_s: 60, more: 1 }])
      expect((await call('PUT', route, body)).json.error.code).toBe('bad_request')

    const { id } = (await read('/me')).user
    const { entries } = await admin(app, 'audit')
    const acts = entries.filter((entry: { target: string; outcome: string }) => entry.target === 'route=alpha/test-model' && entry.outcome !== 'forbidden')
    expect(acts.map((entry: { act: string; outcome: string }) => `${entry.act} ${entry.outcome}`)).toEqual([
      'clearMaintenance not_found',
      'clearMaintenance ok',
      'setMaintenance ok',
    ])
    for (const { actor } of acts) expect(actor).toEqual({ kind: 'user', id, name: 'ops@platform.test' })
    const ofOwn = (await read('/me/audit?limit=200')).entries.map((entry: { act: string }) => entry.act)
    expect(ofOwn).not.toContain('setMaintenance')
  })

  test('a test of a provider key says ok, rejected or unreachable, shows no key, and is bounded', async () => {
    app.beta.script([{ status: 401, body: { error: { message: 'Incorrect key beta-platform-secret' } } }])
    app.indus.script([{ status: 503, body: 'down' }])
    const { providers } = await read('/me/operator/provider-keys')
    expect(providers.map((each: { id: string }) => each.id)).toEqual(expect.arrayContaining(['alpha', 'beta', 'indus']))
    expect(providers.find((each: { id: string }) => each.id === 'alpha')).toEqual({ id: 'alpha', name: 'alpha', residency: 'global', last_test: null })
    const run = (provider: string) => call('POST', `/me/operator/provider-keys/${provider}/test`)
    const ok = await run('alpha')
    expect(ok.json).toEqual({ provider: 'alpha', status: 'ok', proven: true, models: 1, why: null, tested_at: expect.any(String) })
    expect((await run('beta')).json).toMatchObject({ status: 'rejected', proven: null, models: null, why: null })
    expect((await run('indus')).json).toMatchObject({ status: 'unreachable', why: 'it answered 503' })
    const again = await run('alpha')
    expect([again.status, again.json.error.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await run('nobody')).json.error.code).toBe('unknown_provider')
    expect((await run('groq')).json.error.code).toBe('unavailable')
    const after = await read('/me/operator/provider-keys')
    expect(after.providers.find((each: { id: string }) => each.id === 'alpha').last_test).toEqual(ok.json)
    expect(JSON.stringify([after, ok.json])).not.toContain('platform-secret')
    const { entries } = await admin(app, 'audit')
    expect(entries).toContainEqual(
      expect.objectContaining({ act: 'testPlatformKey', target: 'provider=alpha', outcome: 'ok', actor: expect.objectContaining({ kind: 'user' }) }),
    )
  })

  test('the outbox counts what waits and says why mails were not sent, without addresses', async () => {
    expect(await read('/me/operator/outbox')).toEqual({ is_sent: false, waiting: 0, due_now: 0, oldest_at: null, failed: 0, unsent: [] })
    for (const email of ['first@guests.test', 'second@guests.test', 'third@guests.test'])
      expect((await call('POST', '/me/members', { email, role: 'member' }, owner)).status).toBe(201)
    await app.db.exec(giveUpMails, 'first@guests.test')
    await app.db.exec(delayMails, 'second@guests.test')
    const outbox = await read('/me/operator/outbox')
    expect(outbox).toMatchObject({ waiting: 2, due_now: 1, oldest_at: expect.any(String), failed: 1 })
    const shared = { id: expect.any(Number), org_id: app.orgId, template: 'invitation', created_at: expect.any(String) }
    expect(outbox.unsent).toEqual([
      { ...shared, state: 'failed', attempts: 6, next_attempt_at: null, failed_at: expect.any(String), error: 'EENVELOPE 550 RCPT TO' },
      { ...shared, state: 'waiting', attempts: 2, next_attempt_at: expect.any(String), failed_at: null, error: 'ETIMEDOUT CONN' },
    ])
    expect(JSON.stringify(outbox)).not.toMatch(/guests\.test|Test Org/)
  })

  test('the backlog has the deliveries of all organisations, with hosts and without paths', async () => {
    const made = await call('POST', '/me/webhooks', { url: 'http://127.0.0.1:1/secret-path' }, owner)
    expect(made.status).toBe(201)
    expect((await call('POST', `/me/webhooks/${made.json.id}/test`, {}, owner)).status).toBe(200)
    const backlog = await read('/me/operator/backlog')
    expect(backlog).toMatchObject({ endpoints: 1, disabled: 0, open: 1, dead_last_day: 0 })
    expect(backlog.webhooks).toEqual([
      expect.objectContaining({ id: made.json.id, org_id: app.orgId, host: '127.0.0.1:1', enabled: true, open: 1, oldest_at: expect.any(String) }),
    ])
    expect(JSON.stringify(backlog)).not.toMatch(/secret/)
    const { webhooks, ...counts } = backlog
    expect(await admin(app, 'webhooks-list')).toEqual({ webhooks })
    expect(Object.keys(await admin(app, 'webhooks-backlog'))).toEqual(Object.keys(counts))
  })
})
