import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import {
  agentTokenOf,
  answerOf,
  comeBack,
  keyFor,
  leave,
  listOf,
  type MemoryCalls,
  memoryCalls,
  type Person,
  personOf,
  robotKey,
  useStore,
} from './rights-people.ts'
import { testMemory } from './service.ts'

let app: TestApp
let store: S3TestServer
let memory: MemoryCalls
let admin: Person
let anna: Person
let ben: Person
let cara: Person

beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort, MEMBERS_MAX: '1000' } })
  await useStore(app, store)
  memory = memoryCalls(app)
  admin = await personOf(app, 'admin')
  anna = await personOf(app, 'member')
  ben = await personOf(app, 'member')
  cara = await personOf(app, 'member')
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

const shares = '/v1/me/memory/shares'
const open = (by: Person, space: unknown, member_uids?: unknown) =>
  app.call('POST', shares, { space, ...(member_uids === undefined ? {} : { member_uids }) }, { token: by.key })
const grant = (by: Person, space: string, uid: number | string) => app.call('PUT', `${shares}/${space}/members/${uid}`, undefined, { token: by.key })
const revoke = (by: Person, space: string, uid: number | string) => app.call('DELETE', `${shares}/${space}/members/${uid}`, undefined, { token: by.key })
const retire = (by: Person, space: string) => app.call('DELETE', `${shares}/${space}`, undefined, { token: by.key })
const listed = async (token: string, query = ''): Promise<TestReply['json'][]> => (await app.call('GET', `${shares}${query}`, undefined, { token })).json.shares

describe('shares of memory', () => {
  test('SHARE-01 SHARE-02 the person who opens a space owns it (201), and a repeated call is 200 and adds only missing grants', async () => {
    const made = await open(anna, 'first', [ben.userId])
    expect([made.status, made.json]).toEqual([
      201,
      { ok: true, id: expect.any(Number), space: 'first', owner: anna.userId, member_uids: [ben.userId], role: 'owner' },
    ])
    expect(await memory.put(anna.key, 'shared/first/a')).toBe('200')
    expect(await memory.get(ben.key, 'shared/first/a')).toBe('200')
    for (const [uids, after] of [
      [[], [ben.userId]],
      [undefined, [ben.userId]],
      [
        [cara.userId, cara.userId, anna.userId],
        [ben.userId, cara.userId],
      ],
      [[ben.userId], [ben.userId, cara.userId]],
    ] as const) {
      const again = await open(anna, 'first', uids)
      expect([again.status, again.json]).toEqual([200, { ...made.json, member_uids: after }])
    }
    expect(await memory.put(cara.key, 'shared/first/c')).toBe('200')
  })

  test("SHARE-03 SHARE-14 another person's space is 409 space_taken, also for its members and admins; an invalid name is 400 bad_name", async () => {
    await open(anna, 'taken', [ben.userId])
    for (const other of [ben, cara, admin]) expect(answerOf(await open(other, 'taken', [other.userId]))).toBe('409 space_taken')
    expect((await listed(anna.key)).find(share => share.space === 'taken').member_uids).toEqual([ben.userId])
    for (const name of [
      '',
      'Taken',
      'a b',
      'a/b',
      'a_b',
      'a.b',
      '..',
      '-a',
      'a-',
      'ünïcode',
      'a\n',
      ' a',
      'x'.repeat(65),
      'users',
      'agents',
      'org',
      'workspaces',
      'shared',
    ])
      expect(answerOf(await open(anna, name)), name).toBe('400 bad_name')
    expect(answerOf(await open(anna, undefined))).toBe('400 bad_name')
    for (const [space, uids] of [
      [7, []],
      ['typed', 'all'],
      ['typed', ['1']],
      ['typed', Array.from({ length: 501 }, (_, n) => n + 1)],
    ] as const)
      expect(answerOf(await open(anna, space, uids))).toBe('400 bad_request')
    for (const name of ['a', '0', 'x'.repeat(64), 'team-2', 'taken2']) expect((await open(anna, name)).status).toBe(201)
  })

  test('SHARE-05 when member_uids contains an outsider, an invited person or a former member, the call is 400 bad_request and changes nothing', async () => {
    const gone = await personOf(app, 'member')
    await leave(app, gone)
    const other = await app.otherOrg('Share Outsiders')
    await app.call('POST', '/me/members', { email: 'invited@people.test', role: 'member' }, { cookie: admin.cookie })
    const invited = (await personOf(app, 'member', other.orgId)).userId
    await open(anna, 'strict')
    for (const stranger of [gone.userId, other.userId, invited, 999_999, 0, -1, 1.5, 2 ** 40]) {
      expect(answerOf(await open(anna, 'strict', [ben.userId, stranger]))).toBe('400 bad_request')
      expect(answerOf(await open(anna, 'stricter', [ben.userId, stranger]))).toBe('400 bad_request')
    }
    expect((await listed(anna.key)).find(share => share.space === 'strict').member_uids).toEqual([])
    expect((await listed(anna.key)).some(share => share.space === 'stricter')).toBe(false)
    expect((await open(ben, 'stricter')).status).toBe(201)
  })

  test('SHARE-06 SHAPE-32 the list has the shares that the caller owns or belongs to, with owner, members and role, in pages', async () => {
    const dora = await personOf(app, 'member')
    await open(dora, 'list-b', [ben.userId])
    await open(ben, 'list-a', [dora.userId, cara.userId])
    await open(ben, 'list-c', [cara.userId])
    await open(dora, 'list-d')
    await retire(dora, 'list-d')
    const view = (space: string, owner: Person, members: Person[], role: string) => ({
      id: expect.any(Number),
      space,
      owner: owner.userId,
      member_uids: members.map(each => each.userId),
      role,
    })
    const both = [
      view(
        'list-a',
        ben,
        [cara, dora].toSorted((a, b) => a.userId - b.userId),
        'member',
      ),
      view('list-b', dora, [ben], 'owner'),
    ]
    expect(await listed(dora.key)).toEqual(both)
    expect((await app.call('GET', '/v1/me/memory/paths', undefined, { token: dora.key })).json.scopes.shared).toEqual(['shared/list-a/', 'shared/list-b/'])
    const first = (await app.call('GET', `${shares}?limit=1`, undefined, { token: dora.key })).json
    expect(first).toEqual({ shares: [both[0]], next_cursor: 'list-a' })
    expect((await app.call('GET', `${shares}?limit=1&cursor=${first.next_cursor}`, undefined, { token: dora.key })).json).toEqual({
      shares: [both[1]],
      next_cursor: null,
    })
    expect(answerOf(await app.call('GET', `${shares}?cursor=Not%20Ours`, undefined, { token: dora.key }))).toBe('400 bad_request')
    expect((await app.call('GET', '/v1/me/memory/paths', undefined, { token: admin.key })).json.scopes).not.toHaveProperty('shared')
  })

  test('SHARE-07 SHARE-08 only share owner, org owner and org admin grant and revoke, and a grant to a non-member is 404', async () => {
    const owner = await personOf(app, 'owner')
    await open(anna, 'managed', [ben.userId])
    for (const manager of [anna, admin, owner])
      for (const _ of [1, 2]) {
        const granted = await grant(manager, 'managed', cara.userId)
        expect([granted.status, granted.json.member_uids]).toEqual([200, [ben.userId, cara.userId].toSorted((a, b) => a - b)])
        expect(granted.json.role).toBe(manager === anna ? 'owner' : 'manager')
      }
    for (const uid of [ben.userId, cara.userId, admin.userId]) {
      expect(answerOf(await grant(ben, 'managed', uid))).toBe('403 forbidden')
      expect(answerOf(await revoke(ben, 'managed', uid))).toBe('403 forbidden')
      expect(answerOf(await revoke(await personOf(app, 'member'), 'managed', uid))).toBe('403 forbidden')
    }
    const gone = await personOf(app, 'member')
    await leave(app, gone)
    for (const uid of [gone.userId, (await app.otherOrg('Share Others')).userId, 999_999, 0, -1, 'x', '1e3', '99999999999999999999'])
      expect(answerOf(await grant(admin, 'managed', uid)), String(uid)).toBe('404 not_found')
    expect((await grant(admin, 'managed', anna.userId)).json.member_uids).not.toContain(anna.userId)
  })

  test('SHARE-09 SHARE-10 LIFE-11 a revoked grant ends access from the next call on every process and can be given again, and the owner cannot be revoked', async () => {
    await open(anna, 'revoking', [ben.userId])
    // Another process on the same database, because no process may cache who has access.
    const other = await testMemory({ db: app.db, allow: [store.hostPort] })
    const spacesSeen = async () => (await other.memory.callers.of({ ...principalOf(ben), orgId: app.orgId })).sharedSpaces.filter(space => space === 'revoking')
    await memory.put(anna.key, 'shared/revoking/a')
    for (const _ of [1, 2]) {
      expect([await memory.get(ben.key, 'shared/revoking/a'), await spacesSeen()]).toEqual(['200', ['revoking']])
      for (const _again of [1, 2]) {
        const revoked = await revoke(anna, 'revoking', ben.userId)
        expect([revoked.status, revoked.json.member_uids]).toEqual([200, []])
        expect([await memory.get(ben.key, 'shared/revoking/a'), await spacesSeen()]).toEqual(['403 forbidden', []])
      }
      expect((await grant(anna, 'revoking', ben.userId)).status).toBe(200)
    }
    for (const uid of [999_999, 'x', 0]) expect((await revoke(anna, 'revoking', uid)).status).toBe(200)
    for (const manager of [anna, admin]) expect(answerOf(await revoke(manager, 'revoking', anna.userId))).toBe('400 share_owner')
    expect(answerOf(await revoke(ben, 'revoking', anna.userId))).toBe('403 forbidden')
    expect(await memory.get(anna.key, 'shared/revoking/a')).toBe('200')
    await other.close()
  })

  test('SHARE-04 SHARE-11 SHARE-12 LIFE-10 PERM-13 a retired share is closed permanently, its objects stay, and its name cannot be used again', async () => {
    for (const [space, retiring] of [
      ['ended-by-owner', anna],
      ['ended-by-admin', admin],
    ] as const) {
      await open(anna, space, [ben.userId])
      const key = `shared/${space}/kept`
      await memory.put(ben.key, key, 'kept')
      for (const other of [ben, cara]) expect(answerOf(await retire(other, space))).toBe('403 forbidden')
      expect(await memory.get(ben.key, key)).toBe('200')
      const retired = await retire(retiring, space)
      expect([retired.status, retired.json]).toMatchObject([200, { ok: true, space, owner: anna.userId, member_uids: [] }])
      expect((await retire(retiring, space)).status).toBe(200)
      for (const { key: token } of [anna, ben, cara, admin, app])
        for (const [name, of] of Object.entries({ get: memory.get, put: memory.put, remove: memory.remove, list: memory.list }))
          expect(await of(token, name === 'list' ? `shared/${space}/` : key), name).toBe('403 forbidden')
      expect(store.objects.get(`org-${app.orgId}/${key}`)?.bytes.toString()).toBe('kept')
      for (const other of [anna, ben, admin]) expect(answerOf(await open(other, space))).toBe('409 space_retired')
      for (const other of [anna, admin]) expect(answerOf(await grant(other, space, ben.userId))).toBe('409 space_retired')
      expect((await revoke(anna, space, ben.userId)).status).toBe(200)
      expect((await listed(anna.key)).some(share => share.space === space)).toBe(false)
      expect((await app.call('GET', '/v1/me/memory/paths', undefined, { token: anna.key })).json.scopes.shared).not.toContain(`shared/${space}/`)
    }
    const elsewhere = await app.otherOrg('Burnt Elsewhere')
    await useStore(app, store, elsewhere.key)
    expect((await app.call('POST', shares, { space: 'ended-by-owner' }, { token: elsewhere.key })).status).toBe(201)
  })

  test('SHARE-13 an unknown space, one of another organisation and an invalid name are 404 not_found', async () => {
    const other = await app.otherOrg('Share Elsewhere')
    await useStore(app, store, other.key)
    await app.call('POST', shares, { space: 'elsewhere' }, { token: other.key })
    for (const space of ['unknown', 'elsewhere', 'A%20B', '%00', '..%2Fx', 'UNKNOWN', 'x'.repeat(300)])
      for (const answer of [await retire(anna, space), await grant(admin, space, ben.userId), await revoke(admin, space, ben.userId)])
        expect([answer.status, answer.json.error.code], space).toEqual([404, 'not_found'])
  })

  test('SHARE-15 an admin without a grant can see and manage every share, but cannot read its data', async () => {
    await open(anna, 'administered', [ben.userId])
    const key = 'shared/administered/secret'
    await memory.put(anna.key, key)
    for (const { key: token } of [admin, app]) {
      for (const answer of [
        await memory.get(token, key),
        await memory.put(token, key),
        await memory.remove(token, key),
        await memory.list(token, 'shared/administered/'),
      ])
        expect(answer).toBe('403 forbidden')
      expect((await app.call('GET', listOf(''), undefined, { token })).json.keys.map((each: { key: string }) => each.key)).not.toContain(key)
      expect((await listed(token)).some(share => share.space === 'administered')).toBe(false)
      expect((await listed(token, '?all=true')).find(share => share.space === 'administered')).toMatchObject({ owner: anna.userId, role: 'manager' })
    }
    expect((await grant(admin, 'administered', admin.userId)).json.role).toBe('member')
    expect(await memory.get(admin.key, key)).toBe('200')
    expect((await listed(admin.key)).some(share => share.space === 'administered')).toBe(true)
    for (const token of [anna.key, (await app.newKey({ scope: 'inference' })).key, await agentTokenOf(app, app.key, 'lister'), (await robotKey(app, null)).key])
      expect(answerOf(await app.call('GET', `${shares}?all=true`, undefined, { token }))).toBe('403 forbidden')
  })

  test('AUTH-16 SHARE-16 SCOPE-10 SCOPE-11 inference keys, agent tokens and keys without a user can list shares but not change them', async () => {
    await open(anna, 'persons-only', [ben.userId])
    await memory.put(anna.key, 'shared/persons-only/a')
    const inference = await keyFor(app, anna.cookie, { scope: 'inference' })
    const agent = await agentTokenOf(app, anna.key, 'of anna')
    const robot = (await robotKey(app, null)).key
    for (const token of [inference, agent, robot])
      for (const [method, path, body] of [
        ['POST', shares, { space: 'persons-only', member_uids: [cara.userId] }],
        ['POST', shares, { space: 'by-no-person' }],
        ['PUT', `${shares}/persons-only/members/${cara.userId}`, undefined],
        ['DELETE', `${shares}/persons-only/members/${ben.userId}`, undefined],
        ['DELETE', `${shares}/persons-only`, undefined],
        ['DELETE', `${shares}/unknown`, undefined],
      ] as const)
        expect(answerOf(await app.call(method, path, body, { token })), `${method} ${path}`).toBe('403 forbidden')
    const own = await listed(anna.key)
    expect(own.find(share => share.space === 'persons-only').member_uids).toEqual([ben.userId])
    for (const token of [inference, agent]) {
      expect(await listed(token)).toEqual(own)
      expect(await memory.get(token, 'shared/persons-only/a')).toBe('200')
    }
    expect((await app.call('GET', shares, undefined, { token: robot })).json).toEqual({ shares: [], next_cursor: null })
    for (const method of ['GET', 'POST']) {
      const answer = await app.call(method, shares, method === 'POST' ? { space: 'by-cookie' } : undefined, { cookie: anna.cookie })
      expect([answer.status, answer.json.error.code]).toEqual([401, 'invalid_api_key'])
    }
  })

  test('SHARE-17 a person who leaves the organisation loses access and grants immediately, and their own shares stay open for others', async () => {
    const eve = await personOf(app, 'member')
    const finn = await personOf(app, 'member')
    await open(anna, 'left-behind', [eve.userId, ben.userId])
    await open(finn, 'orphaned', [ben.userId])
    await memory.put(finn.key, 'shared/orphaned/a')
    for (const person of [eve, finn]) await leave(app, person)
    expect(await memory.get(eve.key, 'shared/left-behind/a')).toBe('401 invalid_api_key')
    expect((await listed(anna.key)).find(share => share.space === 'left-behind').member_uids).toEqual([ben.userId])
    expect(await memory.put(ben.key, 'shared/orphaned/b')).toBe('200')
    expect((await listed(admin.key, '?all=true')).find(share => share.space === 'orphaned')).toMatchObject({ owner: finn.userId, member_uids: [ben.userId] })
    expect((await grant(admin, 'orphaned', cara.userId)).status).toBe(200)
    expect(await memory.get(cara.key, 'shared/orphaned/a')).toBe('200')
    const back = await comeBack(app, eve)
    expect(await memory.get(back, 'shared/left-behind/a')).toBe('403 forbidden')
    expect(await listed(back)).toEqual([])
    expect((await grant(anna, 'left-behind', eve.userId)).status).toBe(200)
    expect(await memory.put(back, 'shared/left-behind/a')).toBe('200')
    expect((await retire(admin, 'orphaned')).status).toBe(200)
  })

  test('before a store is configured, every call on shares is 404 memory_not_configured, unless the role is refused first', async () => {
    const other = await app.otherOrg('Shares Unconfigured')
    const robot = await app.gateway.app.keys.create({ orgId: other.orgId, userId: null, workspaceId: null, name: 'robot', scope: 'full' })
    for (const [method, path, body] of [
      ['GET', shares, undefined],
      ['POST', shares, {}],
      ['POST', shares, { space: 'BAD', member_uids: [0] }],
      ['PUT', `${shares}/x/members/1`, undefined],
      ['DELETE', `${shares}/x/members/1`, undefined],
      ['DELETE', `${shares}/x`, undefined],
    ] as const) {
      expect(answerOf(await app.call(method, path, body, { token: other.key }))).toBe('404 memory_not_configured')
      if (method !== 'GET') expect(answerOf(await app.call(method, path, body, { token: robot.key }))).toBe('403 forbidden')
    }
  })

  test('a share that several people open concurrently has one owner, and a member who leaves during a grant has no grant afterwards', async () => {
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all([anna, anna, ben, ben, cara, admin].map(person => open(person, `race-${round}`)))
      const statuses = answers.map(answer => answer.status)
      expect(statuses.filter(status => status === 201)).toHaveLength(1)
      const winner = answers.find(answer => answer.status === 201)?.json.owner
      for (const answer of answers) expect(answer.status === 409 ? 'other' : answer.json.owner).toBe(answer.status === 409 ? 'other' : winner)
      const leaving = await personOf(app, 'member')
      await open(anna, `leaving-${round}`)
      const [, granted] = await Promise.all([
        leave(app, leaving),
        grant(anna, `leaving-${round}`, leaving.userId),
        open(anna, `leaving-${round}`, [leaving.userId]),
      ])
      expect([200, 404]).toContain(granted.status)
      expect((await listed(anna.key)).find(share => share.space === `leaving-${round}`).member_uids).toEqual([])
    }
  })

  test('the number of shares that one person owns is bounded, and every change writes a line with the number of the share into the audit trail', async () => {
    const hoarder = await personOf(app, 'member')
    const ids: number[] = []
    for (let n = 0; n < 100; n++) ids.push((await open(hoarder, `hoard-${n}`)).json.id)
    expect(answerOf(await open(hoarder, 'hoard-100'))).toBe('400 cap')
    expect((await open(hoarder, 'hoard-7', [ben.userId])).status).toBe(200)
    await revoke(hoarder, 'hoard-7', ben.userId)
    await retire(hoarder, 'hoard-7')
    expect((await open(hoarder, 'hoard-100')).status).toBe(201)
    expect(answerOf(await retire(ben, 'hoard-8'))).toBe('403 forbidden')
    const entries = async (act: string) => (await app.call('GET', `/me/audit?act=${act}&limit=5`, undefined, { cookie: admin.cookie })).json.entries
    expect((await entries('revokeShare'))[0]).toMatchObject({ target: `uid=${ben.userId} id=${ids[7]}`, outcome: 'ok', actor: { kind: 'key' } })
    expect((await entries('retireShare')).slice(0, 2).map(({ target, outcome }: TestReply['json']) => [target, outcome])).toEqual([
      [null, 'forbidden'],
      [`id=${ids[7]}`, 'ok'],
    ])
    expect((await entries('createShare'))[0].outcome).toBe('ok')
  })
})

const principalOf = ({ userId }: Person) =>
  ({
    kind: 'key',
    userId,
    role: 'member',
    keyId: 1,
    keyName: 'k',
    scope: 'full',
    workspaceId: null,
    limits: { rpmLimit: null, dailyLimit: null },
    policies: [],
    capabilities: [],
  }) as const
