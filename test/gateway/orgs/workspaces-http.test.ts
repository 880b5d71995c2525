import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'

const codeOf = (reply: TestReply) => [reply.status, reply.json.error?.code]

describe('workspaces over HTTP', () => {
  let app: TestApp
  let owner: string
  let admin: TestMember
  let member: TestMember
  beforeAll(async () => {
    app = await startApp()
    owner = await app.signIn()
    admin = await app.newMember('admin')
    member = await app.newMember('member')
  })
  afterAll(() => app.stop())

  let named = 0
  const create = async (body: object = {}) => (await app.call('POST', '/me/workspaces', { name: `Space ${++named}`, ...body }, { cookie: owner })).json
  const patch = (id: number | string, body: object, cookie = owner) => app.call('PATCH', `/me/workspaces/${id}`, body, { cookie })
  const list = async (cookie = owner) => (await app.call('GET', '/me/workspaces', undefined, { cookie })).json.workspaces
  const found = async (id: number) => (await list()).find((each: { id: number }) => each.id === id)
  const boundKey = (workspaceId: number, userId = app.userId) =>
    app.gateway.app.keys.create({ orgId: app.orgId, userId, workspaceId, name: `bound ${++named}`, scope: 'full', rpmLimit: null, dailyLimit: null })
  const chat = (token: string) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50 }, { token })

  test('WS-01 SHAPE-25 every member and an agent can read the workspaces with budget, spend and team', async () => {
    const made = await app.call('POST', '/me/workspaces', { name: ' Production ' }, { cookie: owner })
    expect(made.status).toBe(201)
    expect(made.json).toEqual({
      id: expect.any(Number),
      name: 'Production',
      monthly_budget_inr: null,
      spend_month_inr: 0,
      archived: false,
      keys: 0,
      member_uids: [],
    })
    const changed = await patch(made.json.id, { name: 'Prod', monthly_budget_inr: 12.5, member_uids: [member.userId, app.userId, member.userId] })
    const expected = {
      id: made.json.id,
      name: 'Prod',
      monthly_budget_inr: 12.5,
      spend_month_inr: 0,
      archived: false,
      keys: 0,
      member_uids: [app.userId, member.userId],
    }
    expect([changed.status, changed.json]).toEqual([200, { ok: true, ...expected }])
    for (const cookie of [owner, admin.cookie, member.cookie]) expect(await list(cookie)).toContainEqual(expected)
    const { token } = await app.newAgent('workspace-reader')
    expect((await app.call('GET', '/me/workspaces', undefined, { token })).json.workspaces).toContainEqual(expected)
  })

  test('WS-02 owners and admins make, change and archive workspaces; a member gets 403, whether or not the id exists', async () => {
    const { id } = await create()
    for (const [method, path] of [
      ['POST', '/me/workspaces'],
      ['PATCH', `/me/workspaces/${id}`],
      ['PATCH', '/me/workspaces/999999'],
      ['DELETE', `/me/workspaces/${id}`],
      ['DELETE', '/me/workspaces/999999'],
    ] as const)
      expect(codeOf(await app.call(method, path, method === 'DELETE' ? undefined : { name: 'Mine' }, { cookie: member.cookie })), `${method} ${path}`).toEqual([
        403,
        'forbidden',
      ])
    expect(await found(id)).toMatchObject({ name: `Space ${named}`, archived: false })
    for (const cookie of [owner, admin.cookie]) {
      const made = await app.call('POST', '/me/workspaces', { name: `By ${cookie.length}-${++named}` }, { cookie })
      expect(made.status).toBe(201)
      expect((await patch(made.json.id, { monthly_budget_inr: 1 }, cookie)).json).toMatchObject({ ok: true, monthly_budget_inr: 1 })
      const gone = await app.call('DELETE', `/me/workspaces/${made.json.id}`, undefined, { cookie })
      expect([gone.status, gone.json.ok, gone.json.archived]).toEqual([200, true, true])
    }
  })

  test('WS-03 the name of a workspace is unique whatever its case, also for concurrent requests; archiving a workspace frees its name', async () => {
    const names = ['Düsseldorf', 'DÜSSELDORF', 'düsseldorf']
    const made = await Promise.all(names.map(name => app.call('POST', '/me/workspaces', { name }, { cookie: owner })))
    expect(made.map(codeOf).sort()).toEqual([
      [201, undefined],
      [400, 'duplicate_workspace'],
      [400, 'duplicate_workspace'],
    ])
    const first = made.find(reply => reply.status === 201)?.json
    const other = await create()
    expect(codeOf(await patch(other.id, { name: 'dÜsseldorf' }))).toEqual([400, 'duplicate_workspace'])
    expect((await found(other.id)).name).toBe(other.name)
    expect((await patch(first.id, { name: 'DüsselDorf' })).json.name, 'its own name in other letters').toBe('DüsselDorf')
    expect((await app.call('DELETE', `/me/workspaces/${first.id}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await patch(other.id, { name: 'Düsseldorf' })).status).toBe(200)
    const elsewhere = await app.otherOrg('Elsewhere')
    const cookie = await app.signIn(elsewhere.userId, elsewhere.orgId)
    expect((await app.call('POST', '/me/workspaces', { name: 'Düsseldorf' }, { cookie })).status, 'names belong to one organisation').toBe(201)
    for (const name of ['', '  ', 'a\u0001b', 'x'.repeat(101)]) {
      expect(codeOf(await app.call('POST', '/me/workspaces', { name }, { cookie: owner }))).toEqual([400, 'bad_name'])
      expect(codeOf(await patch(other.id, { name }))).toEqual([400, 'bad_name'])
    }
  })

  test('WS-04 WS-06 a workspace budget applies to its keys from the next call on with 429 budget_exceeded, and null removes it', async () => {
    const { id } = await create()
    const { key } = await boundKey(id)
    const { key: ofMember } = await boundKey(id, member.userId)
    const { key: free } = await app.newKey()
    expect((await chat(key)).status).toBe(200)
    const { spend_month_inr: spent } = await found(id)
    expect(spent).toBeGreaterThan(0)
    for (const round of [1, 2]) {
      expect((await patch(id, { monthly_budget_inr: spent })).json.monthly_budget_inr, `round ${round}`).toBe(spent)
      for (const token of [key, ofMember]) {
        const refused = await chat(token)
        expect([...codeOf(refused), refused.json.error.type]).toEqual([429, 'budget_exceeded', 'rate_limit_error'])
      }
      expect((await chat(free)).status, 'keys outside the workspace are not bound').toBe(200)
      expect((await patch(id, { monthly_budget_inr: null })).json.monthly_budget_inr).toBeNull()
      expect((await chat(ofMember)).status).toBe(200)
    }
    expect((await found(id)).spend_month_inr).toBeGreaterThan(spent)
    for (const wrong of [-1, 0, 1e300, '5', 1e-9, {}])
      expect(codeOf(await patch(id, { monthly_budget_inr: wrong })), String(wrong)).toEqual([400, 'bad_request'])
    expect(await found(id)).toMatchObject({ monthly_budget_inr: null })
  })

  test('EDGE-22 an archived workspace is restored with its team, budget and keys; when its name is taken, the request must give another name', async () => {
    const made = await app.call('POST', '/me/workspaces', { name: 'Restored', monthly_budget_inr: 50, member_uids: [member.userId] }, { cookie: owner })
    const { id } = made.json
    const restore = (body?: object, cookie = owner) => app.call('POST', `/me/workspaces/${id}/restore`, body, { cookie })
    const archive = () => app.call('DELETE', `/me/workspaces/${id}`, undefined, { cookie: owner })
    const { key } = await boundKey(id)
    await archive()
    const bind = () => app.call('POST', '/me/keys', { workspace_id: id }, { cookie: owner })
    expect((await bind()).status, 'no new key while it is archived').toBe(404)
    const back = await restore()
    expect([back.status, back.json]).toMatchObject([
      200,
      { ok: true, id, name: 'Restored', archived: false, monthly_budget_inr: 50, member_uids: [member.userId] },
    ])
    expect((await bind()).status).toBe(201)
    expect((await chat(key)).status).toBe(200)
    expect((await restore()).json.archived, 'again is fine').toBe(false)

    await archive()
    const taken = await app.call('POST', '/me/workspaces', { name: 'RESTORED' }, { cookie: owner })
    expect(taken.status).toBe(201)
    expect(codeOf(await restore())).toEqual([400, 'duplicate_workspace'])
    expect(await found(id)).toMatchObject({ archived: true })
    expect(codeOf(await restore({ name: 'restored' }))).toEqual([400, 'duplicate_workspace'])
    expect(codeOf(await restore({ names: 'x' }))).toEqual([400, 'bad_request'])
    expect((await restore({ name: ' Restored again ' })).json).toMatchObject({ ok: true, id, name: 'Restored again', archived: false })
    await archive()
    expect((await restore({}, member.cookie)).status).toBe(403)
    const other = await app.otherOrg('Other Spaces')
    expect((await restore({}, await app.signIn(other.userId, other.orgId))).status).toBe(404)
  })

  test('one request makes a workspace with its budget and team; when any part is invalid, nothing is made', async () => {
    const made = await app.call('POST', '/me/workspaces', { name: 'Whole', monthly_budget_inr: 5, member_uids: [member.userId] }, { cookie: owner })
    expect([made.status, made.json.monthly_budget_inr, made.json.member_uids]).toEqual([201, 5, [member.userId]])
    const wrong = await app.call('POST', '/me/workspaces', { name: 'Half', member_uids: [999_999] }, { cookie: owner })
    expect(codeOf(wrong)).toEqual([404, 'not_found'])
    expect((await list()).map((each: { name: string }) => each.name)).not.toContain('Half')
  })

  test('WS-05 an archived workspace keeps its usage, and its keys continue to work within its budget', async () => {
    const { id } = await create({ monthly_budget_inr: 100 })
    const { key } = await boundKey(id)
    expect((await chat(key)).status).toBe(200)
    const before = await found(id)
    const usage = (await app.call('GET', '/v1/usage')).json.totals
    for (let i = 0; i < 2; i++) {
      const archived = await app.call('DELETE', `/me/workspaces/${id}`, undefined, { cookie: admin.cookie })
      expect([archived.status, archived.json]).toEqual([200, { ok: true, ...before, archived: true }])
    }
    expect(await found(id)).toEqual({ ...before, archived: true })
    expect((await list()).at(-1).archived, 'archived workspaces are last').toBe(true)
    expect((await app.call('GET', '/v1/usage')).json.totals).toEqual(usage)
    expect((await chat(key)).status).toBe(200)
    const { spend_month_inr: spent } = await found(id)
    expect(spent).toBeGreaterThan(before.spend_month_inr)
    await patch(id, { monthly_budget_inr: spent })
    expect(codeOf(await chat(key))).toEqual([429, 'budget_exceeded'])
  })

  test('a team contains only members of the organisation; a member who leaves the organisation also leaves its teams', async () => {
    const leaver = await app.newMember('member')
    const { id } = await create({ member_uids: [member.userId, leaver.userId] })
    const stranger = await app.otherOrg('Strangers')
    for (const uid of [stranger.userId, 999_999, 0, -1, 1.5, 2 ** 40])
      expect(codeOf(await patch(id, { member_uids: [member.userId, uid] })), String(uid)).toEqual([404, 'not_found'])
    expect((await found(id)).member_uids).toEqual([member.userId, leaver.userId])
    expect((await app.call('DELETE', `/me/members/${leaver.userId}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await found(id)).member_uids).toEqual([member.userId])
    expect(codeOf(await patch(id, { member_uids: [leaver.userId] }))).toEqual([404, 'not_found'])
    expect((await patch(id, { member_uids: [] })).json.member_uids).toEqual([])
  })

  test('an unknown workspace and a workspace of another organisation are 404', async () => {
    const other = await app.otherOrg('Others')
    const cookie = await app.signIn(other.userId, other.orgId)
    const { json: theirs } = await app.call('POST', '/me/workspaces', { name: 'Theirs' }, { cookie })
    for (const id of [theirs.id, 999_999, 'abc', 0, -1, 2 ** 31, '1e3', '%00']) {
      expect(codeOf(await patch(id, { name: 'Taken' })), String(id)).toEqual([404, 'not_found'])
      expect(codeOf(await app.call('DELETE', `/me/workspaces/${id}`, undefined, { cookie: owner })), String(id)).toEqual([404, 'not_found'])
    }
    expect((await app.call('GET', '/me/workspaces', undefined, { cookie })).json.workspaces).toEqual([theirs])
  })
})
