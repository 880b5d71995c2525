import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import {
  agentTokenOf,
  answerOf,
  keyFor,
  type MemoryCalls,
  memoryCalls,
  type Person,
  pathOf,
  personOf,
  robotKey,
  useStore,
  workspaceOf,
} from './rights-people.ts'

let app: TestApp
let store: S3TestServer
let memory: MemoryCalls
let admin: Person
let teammate: Person
let outsider: Person
let workspaceId: number

beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort, MEMORY_OBJECT_MAX_BYTES: String(2 * 1024 * 1024) } })
  await useStore(app, store)
  memory = memoryCalls(app)
  admin = await personOf(app, 'admin')
  teammate = await personOf(app, 'member')
  outsider = await personOf(app, 'member')
  workspaceId = await workspaceOf(app, 'Crew', [teammate.userId])
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

const promote = (token: string, body: object, headers: Record<string, string> = {}) => app.call('POST', '/v1/me/memory/promote', body, { token, headers })
const stored = (key: string, orgId = app.orgId) => store.objects.get(`org-${orgId}/${key}`)

describe('promotion of records', () => {
  test('MEM-31 SHAPE-34 a record of a workspace or of the organisation names its promoter and its sources', async () => {
    const journal = [`workspaces/${workspaceId}/journal/2026-11-21/one.md`, `workspaces/${workspaceId}/journal/zwölf, und mehr.md`]
    for (const key of journal) expect(await memory.put(teammate.key, key)).toBe('200')
    const made = await promote(app.key, {
      workspace_id: workspaceId,
      name: 'routing.md',
      content: 'We route by pricé.',
      source_keys: [...journal, journal[0]],
    })
    const key = `workspaces/${workspaceId}/records/routing.md`
    expect([made.status, made.json]).toEqual([200, { ok: true, key }])
    expect(stored(key)?.bytes.toString()).toBe('We route by pricé.')
    expect(stored(key)?.metadata).toMatchObject({ 'br-promoted-by': String(app.userId), 'br-user': String(app.userId), 'br-ts': expect.stringMatching(/Z$/) })
    const sources = stored(key)?.metadata['br-sources'] ?? ''
    expect(sources).toMatch(/^workspaces\/\d+\/journal\/2026-11-21\/one\.md,[\x21-\x7e]+$/)
    expect(sources.split(',').map(decodeURIComponent)).toEqual(journal)
    const read = await app.call('GET', pathOf(key), undefined, { token: teammate.key })
    expect([read.status, read.text, read.headers.get('etag')]).toEqual([200, 'We route by pricé.', made.headers.get('etag')])
    expect([read.headers.get('x-br-meta-promoted-by'), read.headers.get('x-br-meta-sources')]).toEqual([String(app.userId), sources])

    const org = await promote(admin.key, { name: 'policy.md', content: 'Be kind.' }, { 'x-br-agent-id': 'curator' })
    expect([org.status, org.json]).toEqual([200, { ok: true, key: 'org/records/policy.md' }])
    expect(stored('org/records/policy.md')?.metadata).toMatchObject({ 'br-promoted-by': String(admin.userId), 'br-agent': 'curator' })
    expect(stored('org/records/policy.md')?.metadata).not.toHaveProperty('br-sources')
    for (const token of [app.key, admin.key, outsider.key, (await robotKey(app, null)).key])
      expect(await memory.get(token, 'org/records/policy.md')).toBe('200')
    expect((await promote(app.key, { workspace_id: String(workspaceId), name: 'by-text', content: '' })).json.key).toBe(
      `workspaces/${workspaceId}/records/by-text`,
    )
    expect((await promote(app.key, { workspace_id: null, name: 'by-null', content: '' })).json.key).toBe('org/records/by-null')
  })

  test('promoting the same name again replaces the record, If-Match and If-None-Match apply, and no other call can write or delete a record', async () => {
    const key = 'org/records/replaced.md'
    const first = await promote(app.key, { name: 'replaced.md', content: 'one', source_keys: ['agents/x'] }, { 'if-none-match': '*' })
    expect(first.status).toBe(200)
    const refused = await promote(app.key, { name: 'replaced.md', content: 'two' }, { 'if-none-match': '*' })
    expect([answerOf(refused), refused.json.author]).toEqual(['412 memory_conflict', { user: String(app.userId) }])
    expect(answerOf(await promote(app.key, { name: 'replaced.md', content: 'two' }, { 'if-match': '"other"' }))).toBe('412 memory_conflict')
    expect(answerOf(await promote(admin.key, { name: 'replaced.md', content: 'two' }, { 'if-match': first.headers.get('etag') ?? '' }))).toBe('200')
    expect([stored(key)?.bytes.toString(), stored(key)?.metadata['br-promoted-by'], stored(key)?.metadata['br-sources']]).toEqual([
      'two',
      String(admin.userId),
      undefined,
    ])
    for (const token of [app.key, admin.key])
      for (const answer of [await memory.put(token, key), await memory.remove(token, key)]) expect(answer).toBe('403 forbidden')
    const used = async () => (await app.call('GET', '/v1/me/memory-store')).json.bytes_used
    const before = await used()
    await promote(app.key, { name: 'replaced.md', content: 'twelve bytes' })
    expect(await used()).toBe(before + 9)
  })

  test('MEM-32 PERM-12 SCOPE-08 only owners and admins with a full key of their own promote and configure the store, even outside the team', async () => {
    const name = 'who.md'
    for (const { key: token } of [app, admin]) {
      expect(answerOf(await promote(token, { name, content: 'x' }))).toBe('200')
      expect(answerOf(await promote(token, { workspace_id: workspaceId, name, content: 'x' }))).toBe('200')
      expect(await memory.get(token, `workspaces/${workspaceId}/records/${name}`)).toBe('403 forbidden')
      await useStore(app, store, token)
    }
    const refused = {
      member: outsider.key,
      teammate: teammate.key,
      'key without a user': (await robotKey(app, null)).key,
      'key of the workspace': (await robotKey(app, workspaceId)).key,
      'inference key of an admin': await keyFor(app, admin.cookie, { scope: 'inference' }),
      'agent of an admin': await agentTokenOf(app, admin.key, 'promoter'),
    }
    const configuration = { endpoint: store.endpoint, bucket: store.bucket, access_key: store.accessKey, secret_key: store.secretKey }
    for (const [who, token] of Object.entries(refused)) {
      expect(answerOf(await promote(token, { name, content: 'y' })), who).toBe('403 forbidden')
      expect(answerOf(await promote(token, { workspace_id: 999_999, name: '../x', content: 'y' })), who).toBe('403 forbidden')
      expect(answerOf(await app.call('PUT', '/v1/me/memory-store', configuration, { token })), who).toBe('403 forbidden')
    }
    const cookie = await app.signIn()
    expect(answerOf(await app.call('POST', '/v1/me/memory/promote', { name, content: 'y' }, { cookie }))).toBe('401 invalid_api_key')
    expect(answerOf(await app.call('PUT', '/v1/me/memory-store', configuration, { cookie }))).toBe('401 invalid_api_key')
    for (const by of [cookie, admin.cookie]) expect(answerOf(await app.call('PUT', '/me/memory-store', configuration, { cookie: by }))).toBe('200')
    expect(stored(`org/records/${name}`)?.bytes.toString()).toBe('x')
  })

  test('MEM-33 an unknown, archived or foreign workspace is 404 not_found, and so is an invalid id', async () => {
    const archived = await workspaceOf(app, 'Archived', [])
    expect((await app.call('DELETE', `/me/workspaces/${archived}`, undefined, { cookie: await app.signIn() })).status).toBe(200)
    const other = await app.otherOrg('Foreign Workspace')
    const made = await app.call('POST', '/me/workspaces', { name: 'Theirs' }, { cookie: await app.signIn(other.userId, other.orgId) })
    for (const workspace_id of [999_999, archived, made.json.id, 0, -1, 1.5, 2 ** 40, 'x', '', `0${workspaceId}`, `${workspaceId}/../1`]) {
      const answer = await promote(app.key, { workspace_id, name: 'x', content: 'x' })
      expect([answer.status, answer.json.error.code], String(workspace_id)).toEqual([404, 'not_found'])
    }
    expect([...store.objects.keys()].filter(key => /workspaces\/(0|-1|x)/.test(key))).toEqual([])
  })

  test('MEM-34 a record above the quota is 413 and nothing is stored, and so is one above the size of an object', async () => {
    const other = await app.otherOrg('Promotion Quota')
    await useStore(app, store, other.key, { quota_mb: 1 })
    const over = await promote(other.key, { name: 'big', content: 'x'.repeat(1024 * 1024 + 1) })
    expect(answerOf(over)).toBe('413 memory_quota_exceeded')
    expect(stored('org/records/big', other.orgId)).toBeUndefined()
    expect(answerOf(await promote(other.key, { name: 'big', content: 'x'.repeat(1024 * 1024) }))).toBe('200')
    expect(answerOf(await promote(other.key, { name: 'more', content: 'x' }))).toBe('413 memory_quota_exceeded')
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: other.key })).json.bytes_used).toBe(1024 * 1024)
    expect(answerOf(await promote(app.key, { name: 'huge', content: 'x'.repeat(2 * 1024 * 1024 + 1) }))).toBe('413 payload_too_large')
  })

  test('MEM-35 an invalid name is 400 bad_name, for workspaces and the organisation', async () => {
    const names = [
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '..',
      '../x',
      'a/../b',
      './a',
      'a\\b',
      'a\0b',
      'a\nb',
      '\u202eevil',
      'e\u0301',
      'x'.repeat(1001),
      'a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a',
      undefined,
    ]
    for (const workspace_id of [undefined, workspaceId, 999_999])
      for (const name of names) {
        const answer = await promote(app.key, { workspace_id, name, content: 'x' })
        expect([answer.status, answer.json.error.code], String(name)).toEqual([400, 'bad_name'])
      }
    for (const name of ['a', 'ünïcode 名.md', 'x'.repeat(900)]) expect(answerOf(await promote(app.key, { name, content: 'x' })), name).toBe('200')
  })

  test('HARD-14 the name of a new record cannot contain a slash, and an existing record with a slash can be replaced', async () => {
    const key = `org-${app.orgId}/org/records/old/nested.md`
    store.put(key, 'from before')
    expect(answerOf(await promote(app.key, { name: 'old/nested.md', content: 'x' }))).toBe('400 bad_name')
    expect((await app.call('POST', '/v1/me/memory/reconcile')).status).toBe(200)
    expect(answerOf(await promote(app.key, { name: 'old/nested.md', content: 'anew' }))).toBe('200')
    expect(store.objects.get(key)?.bytes.toString()).toBe('anew')
    expect(answerOf(await promote(app.key, { name: 'old/other.md', content: 'x' }))).toBe('400 bad_name')
  })

  test('invalid contents and sources get an error that says what is wrong, and sources that do not fit are refused, not cut off', async () => {
    expect(answerOf(await promote(app.key, { name: 'x' }))).toBe('400 bad_request')
    for (const content of [7, null, ['x'], '\ud800']) expect(answerOf(await promote(app.key, { name: 'x', content }))).toBe('400 bad_request')
    for (const source of ['', '../x', '/a', 'a//b', 'a\nb'])
      expect(answerOf(await promote(app.key, { name: 'x', content: 'x', source_keys: [source] }))).toBe('400 bad_memory_key')
    const keys = Array.from({ length: 20 }, (_, n) => `agents/${'k'.repeat(44)}-${String(n).padStart(2, '0')}`)
    const many = await promote(app.key, { name: 'x', content: 'x', source_keys: keys })
    expect([answerOf(many), many.json.error.message]).toEqual(['400 bad_request', expect.stringMatching(/1099 bytes.*1024 fit/)])
    const fits = keys.slice(0, 18)
    expect(answerOf(await promote(app.key, { name: 'sourced', content: 'x', source_keys: fits }))).toBe('200')
    expect((await app.call('GET', pathOf('org/records/sourced'))).headers.get('x-br-meta-sources')).toBe(fits.join(','))
    const [name, size] = Object.entries(stored('org/records/sourced')?.metadata ?? {}).reduce(
      ([, sum], [key, value]) => ['', sum + key.length + value.length],
      ['', 0],
    )
    expect([name, size < 2048]).toEqual(['', true])
  })

  test('memory_not_configured is reported after the check of the role and before the check of the body, and a promotion is in the audit trail', async () => {
    const other = await app.otherOrg('Promotion Unconfigured')
    for (const body of [{}, { name: '../x' }, { workspace_id: 1, name: 'x', content: 'x' }])
      expect(answerOf(await promote(other.key, body))).toBe('404 memory_not_configured')
    await promote(admin.key, { name: 'audited', content: 'x' })
    const { entries } = (await app.call('GET', '/me/audit?act=promote&limit=1', undefined, { cookie: admin.cookie })).json
    expect(entries[0]).toMatchObject({ act: 'promote', outcome: 'ok', actor: { kind: 'key' } })
  })
})
