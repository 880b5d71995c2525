import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { keyFor, workspaceOf } from './rights-people.ts'

const dayMs = 86_400_000
let app: TestApp
let store: S3TestServer
const clock = movableClock()
const o = (key: string) => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
const history = (key: string, more = '') => `/v1/me/memory/history?key=${encodeURIComponent(key)}${more}`

beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: store.hostPort } })
  await configure(app.key)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

const configure = (token: string, more: object = {}) =>
  app.call(
    'PUT',
    '/v1/me/memory-store',
    { endpoint: store.endpoint, bucket: store.bucket, access_key: store.accessKey, secret_key: store.secretKey, ...more },
    { token },
  )
const restore = (body: object, token = app.key, headers: Record<string, string> = {}) => app.call('POST', '/v1/me/memory/restore', body, { token, headers })
const append = (body: object, token = app.key, headers: Record<string, string> = {}) => app.call('POST', '/v1/me/memory/append', body, { token, headers })

describe('history, append, search and pages over HTTP', () => {
  test('MEMX-05 the history of a key shows author and time, and a restore adds a version that names the restored version', async () => {
    const agent = await app.newAgent('historian')
    const key = 'agents/plan.md'
    await app.call('PUT', o(key), 'first')
    await app.call('PUT', o(key), 'second', { token: agent.token })
    expect((await app.call('DELETE', o(key))).status).toBe(200)
    const list = await app.call('GET', history(key))
    expect(list.status).toBe(200)
    expect(list.json).toMatchObject({
      key,
      next_cursor: null,
      versions: [
        { how: 'delete', current: false, author: { user: String(app.userId) }, etag: null },
        { how: 'put', size: 6, author: { user: String(app.userId), agent: String(agent.id) } },
        { how: 'put', size: 5, author: { user: String(app.userId) }, modified: expect.stringMatching(/Z$/) },
      ],
    })
    const [, second, first] = list.json.versions
    const read = await app.call('GET', history(key, `&version=${first.version}`))
    expect([read.status, read.text, read.headers.get('etag'), read.headers.get('x-br-meta-user'), read.headers.get('x-content-type-options')]).toEqual([
      200,
      'first',
      first.etag,
      String(app.userId),
      'nosniff',
    ])
    expect((await app.call('GET', history(key, `&version=${second.version}`))).headers.get('x-br-meta-agent')).toBe(String(agent.id))
    const refused = await restore({ key, version: first.version }, app.key, { 'if-match': second.etag })
    expect([refused.status, refused.json.error.code]).toEqual([412, 'memory_conflict'])
    const restored = await restore({ key, version: first.version }, app.key, { 'if-none-match': '*' })
    expect([restored.status, restored.json]).toEqual([200, { ok: true, key, size: 5, etag: restored.headers.get('etag'), restored_from: first.version }])
    const now = await app.call('GET', o(key))
    expect([now.text, now.headers.get('etag'), now.headers.get('x-br-meta-restored-from')]).toEqual(['first', restored.json.etag, first.version])
    const after = await app.call('GET', history(key, '&limit=2'))
    expect(after.json.versions.map(({ how }: { how: string }) => how)).toEqual(['restore', 'delete'])
    const rest = await app.call('GET', history(key, `&limit=2&cursor=${after.json.next_cursor}`))
    expect([rest.json.versions.map(({ version }: { version: string }) => version), rest.json.next_cursor]).toEqual([[second.version, first.version], null])
  })

  test('the history of a key needs the right to read the key, and a missing history is not found', async () => {
    const owner = `users/${app.userId}/private`
    await app.call('PUT', o(owner), 'mine')
    const token = await keyFor(app, (await app.newMember('member')).cookie)
    for (const key of [owner, `users/${app.userId}/never`, 'org/records/none']) {
      const isRecord = key.startsWith('org/')
      expect((await app.call('GET', history(key), undefined, { token })).status).toBe(isRecord ? 404 : 403)
      expect((await restore({ key, version: 'x' }, token)).status).toBe(403)
    }
    for (const [path, status, code] of [
      [history('agents/never'), 404, 'not_found'],
      [history(owner, '&version=nonsense'), 404, 'not_found'],
      [history(owner, '&version=01900000-0000-7000-8000-000000000001'), 404, 'not_found'],
      [history('../x'), 400, 'bad_memory_key'],
      [history(owner, '&cursor=x'), 400, 'bad_request'],
      [history(owner, '&limit=0'), 400, 'bad_request'],
    ] as const) {
      const answer = await app.call('GET', path)
      expect([path, answer.status, answer.json.error.code]).toEqual([path, status, code])
    }
    expect((await restore({ key: owner })).json.error.code).toBe('bad_request')
    const other = await app.otherOrg('No History')
    for (const answer of [
      await app.call('GET', history('agents/a'), undefined, { token: other.key }),
      await restore({}, other.key),
      await append({}, other.key),
    ])
      expect([answer.status, answer.json.error.code]).toEqual([404, 'memory_not_configured'])
  })

  test('an admin configures the amount of history, which is shown, does not count as used bytes, and can be erased', async () => {
    const other = await app.otherOrg('Keeper')
    const token = other.key
    await configure(token)
    const shown = async () => (await app.call('GET', '/v1/me/memory-store', undefined, { token })).json
    expect(await shown()).toMatchObject({ history_versions: 10, history_days: 30, history_bytes: 0 })
    for (const more of [{ history_versions: -1 }, { history_versions: 1.5 }, { history_days: 0 }]) {
      const answer = await configure(token, more)
      expect([answer.status, answer.json.error.code]).toEqual([400, 'bad_request'])
    }
    expect((await configure(token, { history_versions: 2, history_days: 3 })).status).toBe(200)
    for (const text of ['1', '22', '333', '4444']) await app.call('PUT', o('agents/kept'), text, { token })
    expect(await shown()).toMatchObject({ history_versions: 2, history_days: 3, history_bytes: 5, bytes_used: 4 })
    expect((await app.call('GET', history('agents/kept'), undefined, { token })).json.versions).toHaveLength(3)
    expect((await app.call('DELETE', `${o('agents/kept')}&history=erase`, undefined, { token })).status).toBe(200)
    expect((await app.call('GET', history('agents/kept'), undefined, { token })).status).toBe(404)
    expect(await shown()).toMatchObject({ history_bytes: 0, bytes_used: 0 })
    expect([...store.objects.keys()].filter(key => key.startsWith(`org-${other.orgId}/`))).toEqual([])
    const wrong = await app.call('DELETE', `${o('agents/kept')}&history=maybe`, undefined, { token })
    expect([wrong.status, wrong.json.error.code]).toEqual([400, 'bad_request'])
  })

  test('erasing a history writes a line without the key into the audit trail, and a deletion that keeps the history writes none', async () => {
    const other = await app.otherOrg('Eraser')
    const token = other.key
    await configure(token)
    const cookie = await app.signIn(other.userId, other.orgId)
    const erased = async () =>
      (await app.call('GET', '/me/audit?act=eraseMemory', undefined, { cookie })).json.entries.map(
        (entry: { outcome: string; target: string | null; actor: { kind: string } }) => [entry.outcome, entry.target, entry.actor.kind],
      )
    await app.call('PUT', o('agents/secret-plan'), 'text', { token })
    expect((await app.call('DELETE', o('agents/secret-plan'), undefined, { token })).status).toBe(200)
    expect(await erased()).toEqual([])
    const refused = await app.call('DELETE', `${o('agents/secret-plan')}&history=erase`, undefined, { token, headers: { 'if-match': '"other"' } })
    expect(refused.json.error.code).toBe('memory_conflict')
    expect((await app.call('DELETE', `${o('agents/secret-plan')}&history=erase`, undefined, { token })).status).toBe(200)
    expect(await erased()).toEqual([
      ['ok', null, 'key'],
      ['memory_conflict', null, 'key'],
    ])
  })

  test.each([
    ['has no copy', 'noCopy'],
    ['knows no conditions', 'noConditions'],
    ['ignores conditions', 'ignoreConditions'],
  ] as const)('a store that %s keeps history too, also of objects that were put there directly', async (name, fault) => {
    const other = await app.otherOrg(`Store ${name}`)
    const token = other.key
    store.faults[fault] = true
    try {
      await configure(token)
      await app.call('PUT', o('agents/x'), 'ours', { token })
      await app.call('PUT', o('agents/x'), 'ours too', { token })
      store.put(`org-${other.orgId}/agents/x`, 'theirs')
      await app.call('DELETE', o('agents/x'), undefined, { token })
    } finally {
      store.faults[fault] = false
    }
    const { versions } = (await app.call('GET', history('agents/x'), undefined, { token })).json
    const texts = await Promise.all(
      versions.map(async ({ version }: { version: string }) => (await app.call('GET', history('agents/x', `&version=${version}`), undefined, { token })).text),
    )
    expect(versions.map(({ how, author }: { how: string; author: object | null }) => [how, author?.constructor ?? null])).toEqual([
      ['delete', Object],
      ['put', null],
      ['put', Object],
    ])
    expect(texts.slice(1)).toEqual(['theirs', 'ours'])
  })

  test('a reader that already has the object gets 304 without the bytes', async () => {
    const { headers } = await app.call('PUT', o('agents/cached'), 'body')
    const etag = headers.get('etag') ?? ''
    const same = await app.call('GET', o('agents/cached'), undefined, { headers: { 'if-none-match': etag } })
    expect([same.status, same.text, same.headers.get('etag')]).toEqual([304, '', etag])
    expect((await app.call('GET', o('agents/cached'), undefined, { headers: { 'if-none-match': '"other"' } })).text).toBe('body')
  })

  test('MEMX-07 every append makes a new object that nobody can change, and all entries of concurrent writers are kept', async () => {
    const agent = await app.newAgent('journalist')
    const path = 'agents/log'
    const made = await Promise.all(Array.from({ length: 40 }, (_, n) => append({ path, content: `entry ${n}` }, n % 2 === 0 ? app.key : agent.token)))
    for (const answer of made)
      expect([answer.status, answer.json]).toEqual([201, { ok: true, key: expect.any(String), size: expect.any(Number), etag: answer.headers.get('etag') }])
    const day = new Date(clock.nowMs()).toISOString().slice(0, 10)
    const listed = (await app.call('GET', `/v1/me/memory/list?prefix=${path}/${day}/`)).json.keys
    expect(new Set(listed.map(({ key }: { key: string }) => key))).toEqual(new Set(made.map(({ json }) => json.key)))
    const texts = await Promise.all(made.map(async ({ json }) => (await app.call('GET', o(json.key))).text))
    expect(texts).toEqual(Array.from({ length: 40 }, (_, n) => `entry ${n}`))
    const { key } = made[1]?.json ?? {}
    expect(key).toMatch(new RegExp(`^${path}/${day}/[0-9A-Z]{26}-agent-${agent.id}\\.md$`))
    expect((await app.call('GET', o(key))).headers.get('x-br-meta-agent')).toBe(String(agent.id))
    for (const headers of [{}, { 'if-match': made[1]?.json.etag }]) {
      const put = await app.call('PUT', o(key), 'rewritten', { headers })
      expect([put.status, put.json.error.code]).toEqual([403, 'forbidden'])
    }
    for (const [body, status, code] of [
      [{ path: 'org/records', content: 'x' }, 403, 'forbidden'],
      [{ path: 'users/999999', content: 'x' }, 403, 'forbidden'],
      [{ path: 'a/../b', content: 'x' }, 400, 'bad_memory_key'],
      [{ content: 'x' }, 400, 'bad_memory_key'],
      [{ path }, 400, 'bad_request'],
      [{ path, content: '' }, 400, 'bad_request'],
    ] as const) {
      const answer = await append(body)
      expect([body, answer.status, answer.json.error.code]).toEqual([body, status, code])
    }
  })

  test('journal entries and their versions end after journal_ttl_days', async () => {
    const token = app.key
    expect((await configure(token, { journal_ttl_days: 2, history_days: 300 })).status).toBe(200)
    const path = `workspaces/${await workspaceOf(app, 'Crew', [app.userId])}/journal`
    const key = `${path}/notes`
    await app.call('PUT', o(key), 'overripe', { token })
    await app.call('PUT', o(key), 'overripe too', { token })
    const entry = (await append({ path, content: 'today' }, token)).json.key
    const [, first] = (await app.call('GET', history(key), undefined, { token })).json.versions
    expect((await app.call('GET', history(key, `&version=${first.version}`), undefined, { token })).text).toBe('overripe')
    clock.advance(3 * dayMs)
    for (const path of [history(key), history(key, `&version=${first.version}`), history(entry), o(entry)])
      expect((await app.call('GET', path, undefined, { token })).status).toBe(404)
    expect((await restore({ key, version: first.version }, token)).status).toBe(404)
    expect((await app.call('GET', '/v1/me/memory/search?q=overripe', undefined, { token })).json.matches).toEqual([])
  })

  test('MEMX-04 lists support pages, common prefixes and filters, and without these options the reply has the plain form', async () => {
    const other = await app.otherOrg('Pages')
    const token = other.key
    await configure(token)
    const agentKeys = ['agents/a/1', 'agents/a/2', 'agents/b', 'agents/c']
    for (const key of agentKeys) await app.call('PUT', o(key), key, { token })
    await app.call('PUT', o(`users/${other.userId}/x`), 'x', { token })
    store.put(`org-${other.orgId}/agents/outside`, 'x')
    const list = async (query: string) => (await app.call('GET', `/v1/me/memory/list${query}`, undefined, { token })).json
    const all = [...agentKeys, 'agents/outside', `users/${other.userId}/x`]
    const plain = await list('')
    expect([Object.keys(plain), plain.keys.map(({ key }: { key: string }) => key)]).toEqual([['keys'], all])
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      seen.push(...page.keys.map(({ key }: { key: string }) => key))
      await app.call('PUT', o('agents/0-between'), 'x', { token })
      if (page.next_cursor === null) break
      cursor = page.next_cursor
    }
    expect(seen).toEqual(all)
    expect(await list('?prefix=agents/&delimiter=/')).toMatchObject({
      keys: [{ key: 'agents/0-between' }, { key: 'agents/b' }, { key: 'agents/c' }, { key: 'agents/outside', author: null }],
      prefixes: ['agents/a/'],
      next_cursor: null,
    })
    expect((await list(`?author=user:${other.userId}&prefix=agents/`)).keys).toHaveLength(5)
    expect((await list('?author=agent:1')).keys).toEqual([])
    clock.advance(60_000)
    const since = new Date(clock.nowMs()).toISOString()
    await app.call('PUT', o('agents/b'), 'again', { token })
    expect((await list(`?modified_since=${since}&prefix=agents/b`)).keys.map(({ key }: { key: string }) => key)).toEqual(['agents/b'])
    for (const query of ['?limit=0', '?limit=1001', '?cursor=x', '?author=x', '?modified_since=x'])
      expect([query, (await list(query)).error.code]).toEqual([query, 'bad_request'])
    expect((await app.call('GET', '/v1/me/memory/list?prefix=users/999999/&limit=1', undefined, { token })).status).toBe(403)
  })

  test('MEMX-06 search finds lines in readable objects, each call does bounded work, and the searched text is stored nowhere', async () => {
    const other = await app.otherOrg('Search')
    const token = other.key
    await configure(token)
    for (let n = 0; n < 6; n++) await app.call('PUT', o(`agents/${n}.md`), `title ${n}\nthe zebrafish number ${n} swims\n`, { token })
    store.put(`org-${other.orgId}/users/999999/hidden`, 'zebrafish of somebody else')
    store.put(`org-${other.orgId}/agents/binary`, 'zebrafish\0')
    const search = async (query: string) => app.call('GET', `/v1/me/memory/search?${query}`, undefined, { token })
    const all = await search('q=ZebraFish')
    expect(all.status).toBe(200)
    expect(all.json).toMatchObject({ next_cursor: null, scanned: { objects: 7, bytes: expect.any(Number) } })
    expect(all.json.matches).toHaveLength(6)
    expect(all.json.matches[2]).toEqual({
      key: 'agents/2.md',
      line: 2,
      snippet: 'the zebrafish number 2 swims',
      etag: (await app.call('GET', o('agents/2.md'), undefined, { token })).headers.get('etag'),
      author: { user: String(other.userId) },
      modified: expect.stringMatching(/Z$/),
    })
    const found: string[] = []
    for (let cursor = ''; ; ) {
      const page = (await search(`q=zebra\\w%2B&regex=true&limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`)).json
      found.push(...page.matches.map(({ key }: { key: string }) => key))
      if (page.next_cursor === null) break
      cursor = page.next_cursor
    }
    expect(found).toEqual([0, 1, 2, 3, 4, 5].map(n => `agents/${n}.md`))
    expect((await search('q=ZebraFish&case=true')).json.matches).toEqual([])
    for (const [query, status, code] of [
      ['', 400, 'bad_request'],
      [`q=${'x'.repeat(501)}`, 400, 'bad_request'],
      ['q=(a)\\1&regex=true', 400, 'bad_request'],
      ['q=(unclosedzebra&regex=true', 400, 'bad_request'],
      ['q=x&cursor=zebra', 400, 'bad_request'],
      ['q=x&prefix=users/999999/', 403, 'forbidden'],
      ['q=x&prefix=../', 400, 'bad_memory_key'],
    ] as const) {
      const answer = await search(query)
      expect([query, answer.status, answer.json.error.code]).toEqual([query, status, code])
      expect(answer.text).not.toContain('unclosedzebra')
    }
    expect(await app.dump()).not.toMatch(/zebra/i)
  })
})
