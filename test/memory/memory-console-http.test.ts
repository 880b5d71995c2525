/** Memory at the console: replies for a browser, writes with conditions, names and filters of authors, room, and folders. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { answerOf, leave, type Person, personOf, useStore, workspaceOf } from './rights-people.ts'

let app: TestApp
let store: S3TestServer
let owner: string
let admin: Person
let member: Person
let other: { orgId: number; userId: number; key: string }
let stranger: string

beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort, ANON_RPM: '100000', CONSOLE_RPM: '100000' } })
  owner = await app.signIn()
  admin = await personOf(app, 'admin')
  member = await personOf(app, 'member')
  await useStore(app, store)
  other = await app.otherOrg('Others')
  stranger = await app.signIn(other.userId, other.orgId)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

const o = (key: string): string => `/me/memory/o?key=${encodeURIComponent(key)}`
const ask = (cookie: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<TestReply> =>
  app.call(method, path, body, { cookie, headers })
const list = async (cookie: string, query: Record<string, string>) => {
  const answer = await ask(cookie, 'GET', `/me/memory/list?${new URLSearchParams(query)}`)
  expect(answer.status, answer.text).toBe(200)
  return answer.json
}
const keysOf = ({ keys }: { keys: { key: string }[] }): string[] => keys.map(({ key }) => key)

describe('what a browser gets', () => {
  const guarded = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin' }
  const headersOf = ({ headers }: TestReply, names: readonly string[]) => Object.fromEntries(names.map(name => [name, headers.get(name)]))

  test('an object and its versions come with headers that keep a browser from running them as a page of the gateway', async () => {
    const page = '<script>fetch("/me/keys")</script>'
    expect((await ask(owner, 'PUT', o('agents/page.html'), page)).status).toBe(200)
    const { versions } = (await ask(owner, 'GET', '/me/memory/history?key=agents/page.html')).json
    for (const path of [o('agents/page.html'), `/me/memory/history?key=agents/page.html&version=${versions[0].version}`]) {
      const answer = await ask(member.cookie, 'GET', path)
      expect([answer.status, answer.text]).toEqual([200, page])
      expect(headersOf(answer, [...Object.keys(guarded), 'content-type', 'content-disposition', 'cache-control'])).toEqual({
        ...guarded,
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': null,
        'cache-control': 'no-store',
      })
    }
  })

  test('a browser saves what is not text, under the name of the key', async () => {
    const name = `bild "ünï" (1)'.png`
    for (const [at, bytes] of [Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]), Buffer.from([0xff, 0xfe, 0x41, 0x42]), Buffer.from('text\0text')].entries()) {
      const key = `agents/${at}/${name}`
      store.put(`org-${app.orgId}/${key}`, bytes)
      const answer = await ask(owner, 'GET', o(key))
      expect(headersOf(answer, [...Object.keys(guarded), 'content-type', 'content-disposition'])).toEqual({
        ...guarded,
        'content-type': 'application/octet-stream',
        'content-disposition': "attachment; filename*=UTF-8''bild%20%22%C3%BCn%C3%AF%22%20%281%29%27.png",
      })
      const byKey = await app.call('GET', `/v1${o(key)}`)
      expect(headersOf(byKey, ['content-type', 'content-disposition', 'content-security-policy'])).toEqual({
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': null,
        'content-security-policy': null,
      })
    }
  })

  test('a page of another site cannot write with the session, and a key or nobody is no session', async () => {
    const crew = await workspaceOf(app, 'Origins', [member.userId])
    const writes: [method: string, path: string, body: unknown][] = [
      ['PUT', o('agents/foreign'), 'x'],
      ['DELETE', o('agents/page.html'), undefined],
      ['POST', '/me/memory/append', { path: `workspaces/${crew}/journal`, content: 'x' }],
      ['POST', '/me/memory/restore', { key: 'agents/page.html', version: 'x' }],
      ['POST', '/me/memory/shares', { space: 'foreign' }],
      ['DELETE', '/me/memory/shares/foreign', undefined],
      ['POST', '/me/memory/promote', { name: 'foreign', content: 'x' }],
      ['POST', '/me/memory/reconcile', {}],
    ]
    const count = store.objects.size
    for (const [method, path, body] of writes) {
      for (const headers of [{ origin: 'https://evil.test' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }] as Record<
        string,
        string
      >[])
        expect((await ask(owner, method, path, body, headers)).json.error, path).toMatchObject({
          code: 'forbidden',
          message: expect.stringContaining('a page of another site'),
        })
      for (const token of [app.key, null]) expect(answerOf(await app.call(method, path, body, { token })), path).toBe('401 no_session')
    }
    expect(store.objects.size).toBe(count)
    expect(answerOf(await ask(owner, 'PUT', o('agents/own'), 'x', { origin: app.baseUrl, 'sec-fetch-site': 'same-origin' }))).toBe('200')
  })

  test('an agent token reads at the console with both scopes, and writes nothing', async () => {
    const { id } = await app.newAgent('reader')
    const mint = async (scopes: string[]) => (await app.call('POST', `/v1/me/agents/${id}/token`, { scope: scopes.join(' ') })).json.access_token as string
    const read = async (token: string) => answerOf(await app.call('GET', '/me/memory/list?limit=1', undefined, { token }))
    expect(await read(await mint(['memory:read', 'usage:read']))).toBe('200')
    expect(await read(await mint(['memory:read']))).toBe('403 forbidden')
    expect(await read(await mint(['usage:read']))).toBe('403 forbidden')
    expect(answerOf(await app.call('PUT', o('agents/x'), 'x', { token: await mint(['memory:read', 'memory:write', 'usage:read']) }))).toBe('403 forbidden')
  })
})

describe('what a person changes', () => {
  test('CAPI-01 a write with a session has the person as its author, and a condition that fails answers 412 with the current object', async () => {
    const key = `users/${member.userId}/plan.md`
    const first = await ask(member.cookie, 'PUT', o(key), 'one', { 'if-none-match': '*' })
    const etag = first.headers.get('etag') ?? ''
    expect([first.status, first.json]).toEqual([200, { ok: true, key, size: 3 }])
    expect(answerOf(await ask(member.cookie, 'PUT', o(key), 'again', { 'if-none-match': '*' }))).toBe('412 memory_conflict')
    const second = await ask(member.cookie, 'PUT', o(key), 'two', { 'if-match': etag })
    expect(second.status).toBe(200)
    for (const [method, body] of [
      ['PUT', 'three'],
      ['DELETE', undefined],
    ] as const) {
      const late = await ask(member.cookie, method, o(key), body, { 'if-match': etag })
      expect([answerOf(late), late.json.author, late.json.current_etag]).toEqual([
        '412 memory_conflict',
        { user: String(member.userId) },
        second.headers.get('etag'),
      ])
    }
    const sha256 = createHash('sha256').update('two').digest('hex')
    expect((await ask(member.cookie, 'PUT', o(key), 'three', { 'if-match': `"sha256:${sha256}"` })).status).toBe(200)
    const read = await ask(member.cookie, 'GET', o(key))
    expect([read.text, read.headers.get('x-br-meta-user'), read.headers.get('x-br-meta-agent')]).toEqual(['three', String(member.userId), null])
    expect((await ask(member.cookie, 'GET', o(key), undefined, { 'if-none-match': read.headers.get('etag') ?? '' })).status).toBe(304)
    const byKey = await app.call('GET', `/v1/me/memory/history?key=${key}`, undefined, { token: member.key })
    expect(byKey.json.versions.map(({ how, author }: { how: string; author: unknown }) => [how, author])).toEqual(
      ['put', 'put', 'put'].map(how => [how, { user: String(member.userId) }]),
    )
    const old = byKey.json.versions[2].version
    const restored = await ask(member.cookie, 'POST', '/me/memory/restore', { key, version: old }, { 'if-match': read.headers.get('etag') ?? '' })
    expect(restored.json).toMatchObject({ ok: true, key, size: 3, restored_from: old })
    expect((await app.call('GET', `/v1${o(key)}`, undefined, { token: member.key })).text).toBe('one')
    expect((await ask(member.cookie, 'DELETE', `${o(key)}&history=erase`)).status).toBe(200)
    expect(answerOf(await ask(member.cookie, 'GET', `/me/memory/history?key=${key}`))).toBe('404 not_found')
    expect((await ask(owner, 'GET', '/me/audit?act=eraseMemory&limit=1')).json.entries[0]).toMatchObject({ actor: { kind: 'user', id: member.userId } })
  })

  test('CAPI-01 members append, share and search, admins promote and reconcile, and another organisation finds nothing of it', async () => {
    const crew = await workspaceOf(app, 'Writers', [member.userId])
    const entry = await ask(member.cookie, 'POST', '/me/memory/append', { path: `workspaces/${crew}/journal`, content: 'the zebrafish swims' })
    expect([entry.status, entry.json.key]).toEqual([201, expect.stringMatching(new RegExp(`^workspaces/${crew}/journal/.*-user-${member.userId}\\.md$`))])
    const found = await ask(member.cookie, 'GET', '/me/memory/search?q=zebrafish')
    expect(found.json.matches).toMatchObject([{ key: entry.json.key, line: 1, author: { user: String(member.userId) } }])
    expect((await ask(admin.cookie, 'GET', '/me/memory/search?q=zebrafish')).json.matches).toEqual([])

    expect(answerOf(await ask(member.cookie, 'POST', '/me/memory/shares', { space: 'launch', member_uids: [] }))).toBe('201')
    expect(answerOf(await ask(admin.cookie, 'GET', o('shared/launch/plan.md')))).toBe('403 forbidden')
    expect(answerOf(await ask(member.cookie, 'PUT', `/me/memory/shares/launch/members/${admin.userId}`))).toBe('200')
    expect(answerOf(await ask(admin.cookie, 'PUT', o('shared/launch/plan.md'), 'ship it'))).toBe('200')
    expect((await ask(admin.cookie, 'GET', '/me/memory/shares')).json.shares).toMatchObject([{ space: 'launch', role: 'member', owner: member.userId }])
    expect(answerOf(await ask(member.cookie, 'GET', '/me/memory/shares?all=true'))).toBe('403 forbidden')
    expect((await ask(owner, 'GET', '/me/memory/shares?all=true')).json.shares).toMatchObject([{ space: 'launch', role: 'manager' }])

    for (const path of ['promote', 'reconcile'])
      expect(answerOf(await ask(member.cookie, 'POST', `/me/memory/${path}`, { name: 'a.md', content: 'x' }))).toBe('403 forbidden')
    const record = await ask(admin.cookie, 'POST', '/me/memory/promote', { name: 'fish.md', content: 'fish swim', source_keys: [entry.json.key] })
    expect(record.json).toEqual({ ok: true, key: 'org/records/fish.md' })
    expect((await ask(member.cookie, 'GET', o('org/records/fish.md'))).headers.get('x-br-meta-promoted-by')).toBe(String(admin.userId))
    expect((await ask(admin.cookie, 'POST', '/me/memory/reconcile', {})).json).toMatchObject({ ok: true })

    // The other organisation has a store of its own, in the same bucket.
    await useStore(app, store, other.key)
    expect(answerOf(await ask(stranger, 'GET', o('org/records/fish.md')))).toBe('404 not_found')
    expect(answerOf(await ask(stranger, 'POST', '/me/memory/promote', { name: 'a.md', content: 'x', workspace_id: crew }))).toBe('404 not_found')
    for (const [method, path] of [
      ['PUT', `/me/memory/shares/launch/members/${other.userId}`],
      ['DELETE', `/me/memory/shares/launch/members/${admin.userId}`],
      ['DELETE', '/me/memory/shares/launch'],
    ] as const)
      expect(answerOf(await ask(stranger, method, path)), path).toBe('404 not_found')
    expect((await ask(stranger, 'GET', '/me/memory/shares?all=true')).json.shares).toEqual([])
    expect(keysOf(await list(stranger, { prefix: 'org/' }))).toEqual([])

    expect(answerOf(await ask(member.cookie, 'DELETE', `/me/memory/shares/launch/members/${admin.userId}`))).toBe('200')
    expect(answerOf(await ask(admin.cookie, 'GET', o('shared/launch/plan.md')))).toBe('403 forbidden')
    expect(answerOf(await ask(member.cookie, 'DELETE', '/me/memory/shares/launch'))).toBe('200')
    expect(answerOf(await ask(member.cookie, 'GET', o('shared/launch/plan.md')))).toBe('403 forbidden')
  })

  test('before a store is configured, every memory endpoint of the console answers 404 memory_not_configured', async () => {
    const empty = await app.otherOrg('Empty')
    const cookie = await app.signIn(empty.userId, empty.orgId)
    for (const path of ['paths', 'usage', 'list', 'list?author=user:1', 'o?key=agents/a', 'history?key=agents/a', 'search?q=a', 'shares'])
      expect(answerOf(await ask(cookie, 'GET', `/me/memory/${path}`)), path).toBe('404 memory_not_configured')
  })
})

describe('room', () => {
  test('the usage counts bytes and objects exactly, through writes, deletions and changes in the bucket', async () => {
    const own = await app.otherOrg('Room')
    const cookie = await app.signIn(own.userId, own.orgId)
    await useStore(app, store, own.key, { quota_mb: 3 })
    const usage = async () => (await ask(cookie, 'GET', '/me/memory/usage')).json
    const of = (bytes: number, objects: number, history = 0) => ({ bytes_used: bytes, quota_bytes: 3 * 1024 * 1024, objects, history_bytes: history })
    expect(await usage()).toEqual(of(0, 0))
    for (const key of ['agents/a', 'agents/b']) await ask(cookie, 'PUT', o(key), '12345')
    await ask(cookie, 'PUT', o('agents/a'), '1234567')
    expect(await usage()).toEqual(of(12, 2, 5))
    await ask(cookie, 'DELETE', o('agents/b'))
    await ask(cookie, 'DELETE', o('agents/b'))
    expect(await usage()).toEqual(of(7, 1, 10))
    for (const name of ['c', 'd', 'e']) store.put(`org-${own.orgId}/agents/${name}`, '1')
    store.objects.delete(`org-${own.orgId}/agents/a`)
    await ask(cookie, 'POST', '/me/memory/reconcile', {})
    expect(await usage()).toMatchObject({ bytes_used: 3, objects: 3 })
    expect((await app.call('GET', '/v1/me/memory/usage', undefined, { token: own.key })).json).toEqual(await usage())
    await useStore(app, store, own.key, { quota_mb: 5, reprobe: true })
    expect(await usage()).toMatchObject({ bytes_used: 3, quota_bytes: 5 * 1024 * 1024, objects: 3 })
  })
})

const rename = statement<[id: number, name: string]>('test.rename_person', 'update users set name = $2::text where id = $1::int')

describe('authors', () => {
  const at = (name: string): string => `agents/authors/${name}`
  let agent: { id: number; token: string }
  let leaving: Person
  beforeAll(async () => {
    agent = await app.newAgent('nightly reviewer')
    leaving = await personOf(app, 'member')
    await app.db.exec(rename, member.userId, 'Asha Rao')
    const robot = await app.newKey({ withUser: false, name: 'build robot' })
    const put = (token: string, key: string, headers: Record<string, string> = {}) => app.call('PUT', `/v1${o(key)}`, 'x', { token, headers })
    await ask(member.cookie, 'PUT', o(at('by-session')), 'x')
    await put(member.key, at('by-key'))
    await put(member.key, at('by-label'), { 'x-br-agent-id': 'nightly reviewer' })
    await put(agent.token, at('by-agent'))
    await put(robot.key, at('by-robot'))
    await put(leaving.key, at('by-leaver'))
    store.put(`org-${app.orgId}/${at('by-nobody')}`, 'x')
    await leave(app, leaving)
  })

  interface Named {
    readonly author_name: string | null
    readonly agent_name?: string
  }
  const namesOf = ({ author_name, agent_name }: Named) => [author_name, ...(agent_name === undefined ? [] : [agent_name])]

  test('CAPI-07 lists and the history name authors with a key and with a session, and a list can be limited to one author', async () => {
    const expected = {
      'by-agent': ['owner', 'nightly reviewer'],
      'by-key': ['Asha Rao'],
      'by-label': ['Asha Rao'],
      'by-leaver': [`Former member ${leaving.userId}`],
      'by-nobody': [null],
      'by-robot': ['build robot'],
      'by-session': ['Asha Rao'],
    }
    const prefix = 'agents/authors/'
    const asKey = async (path: string) => (await app.call('GET', `/v1/me/memory/${path}`)).json
    const asPerson = async (path: string) => (await ask(member.cookie, 'GET', `/me/memory/${path}`)).json
    for (const get of [asKey, asPerson]) {
      for (const query of [`list?prefix=${prefix}`, `list?prefix=${prefix}&limit=100`, `list?prefix=${prefix}&delimiter=/`]) {
        const { keys } = (await get(query)) as { keys: (Named & { key: string })[] }
        expect(Object.fromEntries(keys.map(entry => [entry.key.slice(prefix.length), namesOf(entry)])), query).toEqual(expected)
      }
      for (const [name, names] of Object.entries(expected).filter(([name]) => name !== 'by-nobody')) {
        const { versions } = (await get(`history?key=${prefix}${name}`)) as { versions: Named[] }
        expect(versions.map(namesOf), name).toEqual([names])
      }
      const by = async (author: string) => keysOf(await get(`list?prefix=${prefix}&author=${author}`)).map(key => key.slice(prefix.length))
      expect(await by(`agent:${agent.id}`)).toEqual(['by-agent'])
      expect(await by(`user:${member.userId}`)).toEqual(['by-key', 'by-label', 'by-session'])
      expect(await by(`user:${leaving.userId}`)).toEqual(['by-leaver'])
      expect(await by('agent:9999999999')).toEqual([])
      for (const wrong of ['me', 'agent:', 'agent:key-1', 'user:-1']) expect((await get(`list?author=${wrong}`)).error.code, wrong).toBe('bad_request')
    }
    // The index answers the filter, page by page. The store is not asked.
    const calls = store.requests.length
    const pages: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(member.cookie, { prefix, author: `user:${member.userId}`, limit: '1', ...(cursor === '' ? {} : { cursor }) })
      pages.push(...keysOf(page))
      if (page.next_cursor === null) break
      cursor = page.next_cursor
    }
    expect(pages).toEqual(['by-key', 'by-label', 'by-session'].map(at))
    expect(store.requests.length).toBe(calls)
  })

  test('a list of one author shows only what the caller may read, and nothing of another organisation', async () => {
    const own = `users/${member.userId}/private.md`
    await ask(member.cookie, 'PUT', o(own), 'x')
    const author = `user:${member.userId}`
    expect(keysOf(await list(member.cookie, { author }))).toContain(own)
    const seen = keysOf(await list(admin.cookie, { author }))
    expect(seen).toContain(at('by-key'))
    expect(seen.filter(key => key.startsWith('users/'))).toEqual([])
    expect(answerOf(await ask(admin.cookie, 'GET', `/me/memory/list?author=${author}&prefix=users/${member.userId}/`))).toBe('403 forbidden')
    expect(keysOf(await list(stranger, { author }))).toEqual([])
    expect(keysOf(await list(stranger, { author: `agent:${agent.id}` }))).toEqual([])
  })

  test('a list of one author takes a day, a folder level and a whole key as its prefix', async () => {
    const author = `user:${member.userId}`
    expect(keysOf(await list(member.cookie, { author, prefix: 'agents/', modified_since: '2100-01-01' }))).toEqual([])
    expect(keysOf(await list(member.cookie, { author, prefix: at('by-key') }))).toEqual([at('by-key')])
    expect(await list(member.cookie, { author, prefix: 'agents/', delimiter: '/' })).toMatchObject({ prefixes: ['agents/authors/'], next_cursor: null })
  })

  test('a revoked agent keeps its name, a renamed person gets the new one, and no name contains an address', async () => {
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})).status).toBe(200)
    await app.db.exec(rename, member.userId, 'Asha Verma')
    const { keys } = await list(admin.cookie, { prefix: 'agents/authors/' })
    const byName = Object.fromEntries(keys.map((entry: Named & { key: string }) => [entry.key.slice('agents/authors/'.length), namesOf(entry)]))
    expect([byName['by-agent'], byName['by-key']]).toEqual([['owner', 'nightly reviewer'], ['Asha Verma']])
    expect(JSON.stringify(keys)).not.toContain('@')
  })
})

describe('a large tree', () => {
  test('a level above 50,000 objects takes one request to the store, and its pages have every folder and key once', async () => {
    const own = await app.otherOrg('Tree')
    const cookie = await app.signIn(own.userId, own.orgId)
    await useStore(app, store, own.key)
    const folders = Array.from({ length: 50 }, (_, n) => `agents/tree/folder ${String(n).padStart(2, '0')}/`)
    for (const folder of folders) for (let n = 0; n < 1_000; n++) store.put(`org-${own.orgId}/${folder}${n}`, 'x')
    const level = ['agents/tree/a', 'agents/tree/folder 03', 'agents/tree/z']
    for (const key of level) await ask(cookie, 'PUT', o(key), 'x')
    const before = store.requests.length
    const whole = await list(cookie, { prefix: 'agents/tree/', delimiter: '/' })
    expect(store.requests.length - before).toBe(1)
    expect([keysOf(whole), whole.prefixes, whole.next_cursor]).toEqual([level, folders, null])
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(cookie, { prefix: 'agents/tree/', delimiter: '/', limit: '7', ...(cursor === '' ? {} : { cursor }) })
      const found = [...keysOf(page), ...page.prefixes]
      expect(found.length).toBeLessThanOrEqual(7)
      seen.push(...found)
      if (page.next_cursor === null) break
      cursor = page.next_cursor
    }
    expect(seen.sort()).toEqual([...level, ...folders].sort())
    expect((await list(cookie, { delimiter: '/' })).prefixes).toEqual(['agents/'])
  }, 60_000)
})
