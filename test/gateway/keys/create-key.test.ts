import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const dayMs = 24 * 3600_000
const addWorkspace = statement<[orgId: number, name: string, archivedAt: Date | null], { id: number }>(
  'test.add_workspace_for_keys',
  `insert into workspaces (org_id, name, created_at, archived_at) values ($1::int, $2::text, now(), $3::timestamptz) returning id`,
)
const joinWorkspace = statement<[orgId: number, workspaceId: number, userId: number]>(
  'test.join_workspace_for_keys',
  `insert into workspace_members (org_id, workspace_id, user_id, created_at) values ($1::int, $2::int, $3::int, now())`,
)
const outbox = statement<[orgId: number, type: string], { data: { key_id: number } }>(
  'test.create_key_key_events',
  `select data from webhook_events where org_id = $1::int and type = $2::text order by id`,
)

describe('making and listing keys', () => {
  const clock = movableClock()
  let app: TestApp
  let cookie: string
  let member: TestMember
  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
    member = await app.newMember('member')
  })
  afterAll(() => app.stop())

  const make = (body: object = {}, as = cookie) => app.call('POST', '/me/keys', body, { cookie: as })
  const list = async (as = cookie, query = '') => (await app.call('GET', `/me/keys${query}`, undefined, { cookie: as })).json
  const listed = async (id: number) => (await list()).keys.find((key: { id: number }) => key.id === id)
  const chat = (token: string) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }, { token })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]

  test('KEY-01 PERM-02 SHAPE-04 members, admins and owners make a key with an empty body; the reply contains the whole key, and the key works', async () => {
    const admin = await app.newMember('admin')
    for (const as of [cookie, admin.cookie, member.cookie]) {
      const reply = await make({}, as)
      expect(reply.status).toBe(201)
      expect(reply.headers.get('cache-control')).toBe('no-store')
      expect(reply.json).toMatchObject({
        id: expect.any(Number),
        key: expect.stringMatching(/^br-[A-Za-z0-9_-]{32}$/),
        prefix: reply.json.key.slice(0, 12),
        name: expect.stringMatching(new RegExp(`^key ${istDay(clock.nowMs())} \\d+$`)),
        tier: 'standard',
        scope: 'full',
        rpm_limit: 600,
        daily_limit: null,
        budget_inr: null,
        expires_at: null,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      })
      expect((await chat(reply.json.key)).status).toBe(200)
    }
    const unsigned = await app.call('POST', '/me/keys', {}, { token: app.key })
    expect(said(unsigned)).toEqual([401, 'no_session'])
  })

  test('the whole key is in no later reply, no log line and no database row', async () => {
    const { key, id } = (await make({ name: 'shown once' })).json
    await app.call('PATCH', `/me/keys/${id}`, { rpm_limit: 5 }, { cookie })
    const replies = JSON.stringify([await list(), (await app.call('PATCH', `/me/keys/${id}`, {}, { cookie })).json])
    const everywhere = [replies, app.logLines.join('\n'), await app.dump()].join('\n')
    expect(everywhere).toContain(key.slice(0, 12))
    expect(everywhere).not.toContain(key.slice(0, 14))
  })

  test('KEY-02 SHAPE-05 the list shows limits, budget, spend, last use, state and pin, but never the key', async () => {
    const made = (
      await make({ name: 'listed', budget_inr: 100, rpm_limit: 50, daily_limit: 1000, expires_days: 10, scope: 'inference', allowed_models: ['test-model'] })
    ).json
    expect((await chat(made.key)).status).toBe(200)
    await app.call(
      'PATCH',
      `/me/keys/${made.id}`,
      { lifecycle_pin: 'keep', max_concurrency: 4, max_cost_inr_per_call: 2.5, max_output_tokens: 900 },
      { cookie },
    )
    const shown = await listed(made.id)
    expect(shown).toEqual({
      id: made.id,
      prefix: made.prefix,
      name: 'listed',
      tier: 'standard',
      scope: 'inference',
      state: 'active',
      enabled: true,
      owner: { uid: app.userId },
      workspace_id: null,
      rpm_limit: 50,
      daily_limit: 1000,
      budget_inr: 100,
      spend_month_inr: expect.any(Number),
      lifecycle_pin: 'keep',
      inactivity_notice_at: null,
      allowed_models: ['test-model'],
      allowed_providers: null,
      max_cost_inr_per_call: 2.5,
      max_output_tokens: 900,
      max_concurrency: 4,
      tpm_limit: null,
      allowed_tools: null,
      run: null,
      last_used_at: expect.any(String),
      expires_at: made.expires_at,
      created_at: made.created_at,
      rotated_at: null,
      previous_until: null,
    })
    expect(shown.spend_month_inr).toBeGreaterThan(0)
    expect(Math.abs(Date.parse(shown.last_used_at) - clock.nowMs())).toBeLessThan(60_000)
    expect((await list(member.cookie)).keys).toEqual((await list()).keys)
  })

  test('an agent token may read the list of keys with the rights of a member, but may not make a key', async () => {
    const { token } = await app.newAgent('lister')
    const reply = await app.call('GET', '/me/keys', undefined, { token })
    expect([reply.status, reply.json.keys.length > 0]).toEqual([200, true])
    expect(said(await app.call('POST', '/me/keys', {}, { token }))).toEqual([403, 'forbidden'])
  })

  test('KEY-03 LIM-09 the life of a key is 1 to 365 days, and it expires exactly on time', async () => {
    for (const days of [1, 365]) {
      const reply = await make({ expires_days: days })
      expect([reply.status, Date.parse(reply.json.expires_at) - Date.parse(reply.json.created_at)]).toEqual([201, days * dayMs])
    }
    const { key } = (await make({ expires_days: 1 })).json
    clock.advance(dayMs - 60_000)
    expect((await chat(key)).status).toBe(200)
    clock.advance(60_000)
    expect(said(await chat(key))).toEqual([401, 'invalid_api_key'])
  })

  test.each([0, 366, 1.5, -1, '30', true])('KEY-04 expires_days %j is 400 bad_request', async days => {
    expect(said(await make({ expires_days: days }))).toEqual([400, 'bad_request'])
  })

  test.each([
    { rpm_limit: -1 },
    { daily_limit: -5 },
    { rpm_limit: 1.5 },
    { daily_limit: 'many' },
    { rpm_limit: 'NaN' },
    { budget_inr: -1 },
    { budget_inr: 0.0000001 },
    { max_cost_inr_per_call: 0 },
    { max_output_tokens: 0 },
    { max_concurrency: 0 },
    { tpm_limit: 0 },
    { tpm_limit: 1.5 },
    { tpm_limit: 2 ** 31 },
    { allowed_models: [] },
    { lifecycle_pin: 'forever' },
    { scope: 'admin' },
  ])('KEY-24 the value %j is 400 bad_request, when a key is made and when it is changed', async body => {
    expect(said(await make(body))).toEqual([400, 'bad_request'])
    if (!('scope' in body)) expect(said(await app.call('PATCH', `/me/keys/${app.keyId}`, body, { cookie }))).toEqual([400, 'bad_request'])
  })

  test('KEY-24 a limit of null means no limit', async () => {
    const made = await make({ rpm_limit: null, daily_limit: null, budget_inr: null, expires_days: null, max_concurrency: null })
    expect([made.status, made.json.rpm_limit, made.json.daily_limit, made.json.budget_inr]).toEqual([201, null, null, null])
    await app.call('PATCH', `/me/keys/${made.json.id}`, { rpm_limit: 3, daily_limit: 3, budget_inr: 3 }, { cookie })
    const cleared = await app.call('PATCH', `/me/keys/${made.json.id}`, { rpm_limit: null, daily_limit: null, budget_inr: null }, { cookie })
    expect(cleared.json.key).toMatchObject({ rpm_limit: null, daily_limit: null, budget_inr: null })
  })

  test('KEY-05 a key cannot get the name of an active or disabled key, neither when it is made nor in a change of name', async () => {
    const { id } = (await make({ name: 'taken' })).json
    expect(said(await make({ name: ' taken ' }))).toEqual([400, 'duplicate_key_name'])
    await app.call('PATCH', `/me/keys/${id}`, { enabled: false }, { cookie })
    expect(said(await make({ name: 'taken' }))).toEqual([400, 'duplicate_key_name'])
    const other = (await make({ name: 'another' })).json
    expect(said(await app.call('PATCH', `/me/keys/${other.id}`, { name: 'taken' }, { cookie }))).toEqual([400, 'duplicate_key_name'])
    expect((await listed(other.id)).name).toBe('another')
    const elsewhere = await app.otherOrg('Same Names')
    expect((await make({ name: 'taken' }, await app.signIn(elsewhere.userId, elsewhere.orgId))).status).toBe(201)
  })

  test('KEY-06 the names of revoked and expired keys can be used again', async () => {
    const { id } = (await make({ name: 'used before' })).json
    await app.call('DELETE', `/me/keys/${id}`, undefined, { cookie })
    expect((await make({ name: 'used before' })).status).toBe(201)
  })

  test.each(['', '   ', 'x'.repeat(101), 'a\nb'])('the name %j is 400 bad_name', async name => {
    expect(said(await make({ name }))).toEqual([400, 'bad_name'])
  })

  test('names that the gateway generates are unique, also for concurrent requests', async () => {
    const names = (await Promise.all(Array.from({ length: 8 }, () => make()))).map(reply => reply.json.name)
    expect(new Set(names).size).toBe(8)
  })

  test('KEY-19 the number of keys is unlimited; the list has pages of at most 200 and shows each key once, newest first', async () => {
    const org = await app.otherOrg('Many Keys')
    const owner = await app.signIn(org.userId, org.orgId)
    for (let i = 0; i < 205; i++) expect((await make({}, owner)).status).toBe(201)
    const first = await list(owner)
    expect([first.keys.length, typeof first.next_cursor]).toEqual([200, 'string'])
    const rest = await list(owner, `?cursor=${first.next_cursor}`)
    expect([rest.keys.length, rest.next_cursor]).toEqual([6, null])
    const ids = [...first.keys, ...rest.keys].map(key => key.id)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => b - a))
    expect((await list(owner, '?limit=2')).keys.map((key: { id: number }) => key.id)).toEqual(ids.slice(0, 2))
    for (const query of ['?limit=0', '?limit=201', '?limit=x', '?cursor=nonsense'])
      expect(said(await app.call('GET', `/me/keys${query}`, undefined, { cookie: owner }))).toEqual([400, 'bad_request'])
  })

  test('KEY-23 a key with scope inference can call models and cannot manage anything', async () => {
    const { key, scope } = (await make({ scope: 'inference' })).json
    expect(scope).toBe('inference')
    expect((await chat(key)).status).toBe(200)
    expect(said(await app.call('POST', '/v1/me/agents', { name: 'no' }, { token: key }))).toEqual([403, 'forbidden'])
    const full = (await make()).json
    expect((await app.call('POST', '/v1/me/agents', { name: 'yes' }, { token: full.key })).status).toBe(201)
    const { id: workspaceId } = await app.db.one(addWorkspace, app.orgId, 'of scopes', null)
    const bound = await make({ workspace_id: workspaceId })
    expect([bound.status, bound.json.workspace_id, (await listed(bound.json.id)).workspace_id]).toEqual([201, workspaceId, workspaceId])
  })

  test('a key can be bound to a workspace: members use workspaces that list them, and owners use any active one; any other workspace is 404', async () => {
    const { id: mine } = await app.db.one(addWorkspace, app.orgId, 'mine', null)
    const { id: notMine } = await app.db.one(addWorkspace, app.orgId, 'not mine', null)
    const { id: archived } = await app.db.one(addWorkspace, app.orgId, 'archived', new Date())
    const other = await app.otherOrg('Other Workspaces')
    const { id: foreign } = await app.db.one(addWorkspace, other.orgId, 'foreign', null)
    await app.db.exec(joinWorkspace, app.orgId, mine, member.userId)
    expect((await make({ workspace_id: mine }, member.cookie)).status).toBe(201)
    expect(said(await make({ workspace_id: notMine }, member.cookie))).toEqual([404, 'not_found'])
    expect((await make({ workspace_id: notMine })).status).toBe(201)
    for (const id of [archived, foreign, 999_999, 0, -1, 2 ** 31, Number.MAX_SAFE_INTEGER])
      expect(said(await make({ workspace_id: id }))).toEqual([404, 'not_found'])
  })

  test('a member may request lower limits than the defaults, but not higher ones', async () => {
    expect((await make({ rpm_limit: 600, daily_limit: 10, budget_inr: 1 }, member.cookie)).status).toBe(201)
    for (const body of [{ rpm_limit: 601 }, { rpm_limit: null }, { lifecycle_pin: 'keep' }])
      expect(said(await make(body, member.cookie))).toEqual([403, 'forbidden'])
    expect((await make({ rpm_limit: 5000, lifecycle_pin: 'keep' })).status).toBe(201)
  })

  test('the budget of a new key applies from its first call', async () => {
    const { key, budget_inr } = (await make({ budget_inr: 0.000001 })).json
    expect(budget_inr).toBe(0.000001)
    // A budget admits the call that exceeds it, and refuses the next one.
    expect((await chat(key)).status).toBe(200)
    expect(said(await chat(key))).toEqual([429, 'budget_exceeded'])
  })

  test("making a key writes an event without the key's name into the outbox; a refused request writes no event", async () => {
    const before = (await app.db.many(outbox, app.orgId, 'key.created')).length
    const { id, prefix } = (await make({ name: 'secret project' })).json
    await make({ name: 'secret project' })
    const events = await app.db.many(outbox, app.orgId, 'key.created')
    expect(events.length).toBe(before + 1)
    expect(events.find(event => event.data.key_id === id)?.data).toEqual({ key_id: id, prefix, tier: 'standard', scope: 'full' })
  })

  test('an expired key is refused and stays in the list as expired, and its name can be used again', async () => {
    const { key, id } = (await make({ name: 'short life', expires_days: 1 })).json
    expect((await chat(key)).status).toBe(200)
    clock.advance(dayMs)
    expect(said(await chat(key))).toEqual([401, 'invalid_api_key'])
    expect((await listed(id)).state).toBe('expired')
    expect((await make({ name: 'short life' })).status).toBe(201)
  })
})
