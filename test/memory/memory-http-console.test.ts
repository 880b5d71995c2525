/** The memory store at the console, and the expiry of journal entries. The test moves the clock. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type MovableClock, movableClock } from '../harness/clock.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { answerOf, keyFor, listOf, memoryCalls, type Person, pathOf, personOf, useStore, workspaceOf } from './rights-people.ts'

let app: TestApp
let store: S3TestServer
let second: S3TestServer
let clock: MovableClock
let admin: Person
let member: Person
const inputOf = ({ endpoint, bucket, accessKey, secretKey }: S3TestServer) => ({ endpoint, bucket, access_key: accessKey, secret_key: secretKey })

beforeAll(async () => {
  store = await startS3Server()
  second = await startS3Server('second')
  clock = movableClock()
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: `${store.hostPort},${second.hostPort}` } })
  admin = await personOf(app, 'admin')
  member = await personOf(app, 'member')
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
  await second?.close()
})

describe('the memory store at the console', () => {
  const configure = (cookie: string, body: unknown) => app.call('PUT', '/me/memory-store', body, { cookie })
  const view = async (cookie: string) => (await app.call('GET', '/me/memory-store', undefined, { cookie })).json

  test('MEM-11 owners and admins can configure and see the store with a session or a key, and members cannot', async () => {
    const owner = await app.signIn()
    for (const cookie of [owner, admin.cookie]) expect(await view(cookie)).toEqual({ configured: false })
    for (const answer of [await configure(member.cookie, inputOf(store)), await app.call('GET', '/me/memory-store', undefined, { cookie: member.cookie })])
      expect(answerOf(answer)).toBe('403 forbidden')
    for (const method of ['GET', 'PUT'])
      for (const token of [app.key, null]) {
        const answer = await app.call(method, '/me/memory-store', method === 'PUT' ? inputOf(store) : undefined, { token })
        expect(answerOf(answer)).toBe('401 no_session')
      }
    for (const wrong of [
      { ...inputOf(store), access_key: '', secret_key: '' },
      { ...inputOf(store), quota_mb: 0 },
      { ...inputOf(store), journal_ttl_days: -1 },
    ])
      expect(answerOf(await configure(owner, wrong))).toBe('400 bad_request')
    expect(answerOf(await configure(owner, { ...inputOf(store), secret_key: 'wrong' }))).toBe('400 unavailable')

    const made = await configure(admin.cookie, inputOf(store))
    expect([made.status, made.json]).toEqual([200, { ok: true }])
    const byKey = (await app.call('GET', '/v1/me/memory-store')).json
    expect(byKey).toMatchObject({ configured: true, endpoint: store.endpoint, bucket: store.bucket, quota_mb: 1024, journal_ttl_days: 30, bytes_used: 0 })
    for (const cookie of [owner, admin.cookie]) expect(await view(cookie)).toEqual(byKey)
    expect(JSON.stringify(byKey)).not.toContain(store.secretKey)

    await app.call('PUT', pathOf('agents/a'), '12345')
    expect((await configure(owner, { access_key: '', secret_key: '', quota_mb: 7 })).json).toEqual({ ok: true })
    expect(await view(owner)).toMatchObject({ quota_mb: 7, bytes_used: 5 })
    const moved = await configure(owner, { ...inputOf(second) })
    expect([answerOf(moved), moved.json.usage]).toEqual(['409 store_path_change_in_use', { bytes_used: 5, objects: 1 }])
    expect((await configure(owner, { ...inputOf(second), confirm_path_change: true })).json).toEqual({ ok: true })
    expect(await view(owner)).toMatchObject({ endpoint: second.endpoint, bytes_used: 0, quota_mb: 7 })
    expect((await app.call('GET', '/me/audit?act=putStoreConsole&limit=1', undefined, { cookie: owner })).json.entries[0]).toMatchObject({
      outcome: 'ok',
      actor: { kind: 'user', id: app.userId },
    })
  })
})

describe('entries of a journal', () => {
  const day = 24 * 3600 * 1000

  test('MEM-19 MEM-20 after journal_ttl_days a journal entry is not listed and a read is 404, and other objects stay', async () => {
    await useStore(app, store, app.key, { journal_ttl_days: 3, confirm_path_change: true })
    const crew = await workspaceOf(app, 'Crew', [member.userId])
    const { get, put } = memoryCalls(app)
    const keys = [
      `workspaces/${crew}/journal/old.md`,
      `workspaces/${crew}/records/kept.md`,
      'org/records/kept.md',
      'agents/journal/kept.md',
      `users/${member.userId}/journal/kept.md`,
    ]
    for (const [name, workspace_id] of [
      ['kept.md', crew],
      ['kept.md', undefined],
    ] as const)
      expect((await app.call('POST', '/v1/me/memory/promote', { name, workspace_id, content: 'x' })).status).toBe(200)
    for (const key of keys.filter(each => !each.includes('/records/'))) expect(await put(member.key, key)).toBe('200')
    // This object is written directly into the bucket, so the store's own time counts.
    store.put(`org-${app.orgId}/workspaces/${crew}/journal/foreign.md`, 'x')
    const listed = async (prefix: string): Promise<string[]> =>
      (await app.call('GET', listOf(prefix), undefined, { token: member.key })).json.keys.map(({ key }: { key: string }) => key)
    const journal = `workspaces/${crew}/journal/`
    expect(await listed(journal)).toEqual([`${journal}foreign.md`, `${journal}old.md`])

    clock.advance(3 * day - 60_000)
    expect(await listed(journal)).toEqual([`${journal}foreign.md`, `${journal}old.md`])
    expect(await get(member.key, `${journal}old.md`)).toBe('200')
    expect(await put(member.key, `${journal}new.md`)).toBe('200')

    clock.advance(120_000)
    for (const name of ['old.md', 'foreign.md']) expect(await get(member.key, `${journal}${name}`)).toBe('404 not_found')
    expect(await get(member.key, `${journal}new.md`)).toBe('200')
    expect(await listed(journal)).toEqual([`${journal}new.md`])
    const all = await listed('')
    for (const key of keys.slice(1)) {
      expect(all).toContain(key)
      expect(await get(member.key, key), key).toBe('200')
    }
    expect(all).not.toContain(`${journal}old.md`)
    // The key of an expired entry can be written again.
    expect(await put(member.key, `${journal}old.md`)).toBe('200')
    expect(await get(member.key, `${journal}old.md`)).toBe('200')
    // The scope is checked before the existence.
    const stranger = await personOf(app, 'member')
    expect(await get(await keyFor(app, stranger.cookie), `${journal}foreign.md`)).toBe('403 forbidden')
  })
})
