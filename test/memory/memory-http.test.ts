import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

let app: TestApp
let store: S3TestServer
let second: S3TestServer
const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`

beforeAll(async () => {
  store = await startS3Server()
  second = await startS3Server('second')
  app = await startApp({ env: { OUTBOUND_ALLOW: `${store.hostPort},${second.hostPort}`, MEMORY_OBJECT_MAX_BYTES: String(3 * 1024 * 1024) } })
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
  await second?.close()
})

const configure = (token: string, more: object = {}) =>
  app.call(
    'PUT',
    '/v1/me/memory-store',
    { endpoint: store.endpoint, bucket: store.bucket, access_key: store.accessKey, secret_key: store.secretKey, ...more },
    { token },
  )

describe('shared memory over HTTP', () => {
  test('MEM-01 MEM-02 before a store is configured, every data endpoint is 404 memory_not_configured, and the view says so', async () => {
    const other = await app.otherOrg('Unconfigured')
    const calls = [
      ['GET', o('agents/a')],
      ['GET', '/v1/me/memory/o'],
      ['PUT', o('../x')],
      ['DELETE', o('users/999/a')],
      ['GET', '/v1/me/memory/list'],
      ['GET', '/v1/me/memory/paths'],
    ] as const
    for (const [method, path] of calls) {
      const answer = await app.call(method, path, method === 'PUT' ? 'x' : undefined, { token: other.key })
      expect([answer.status, answer.json.error.code]).toEqual([404, 'memory_not_configured'])
    }
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: other.key })).json).toEqual({ configured: false })
  })

  test('MEM-03 MEM-05 MEM-39 an owner configures the store, the view masks the access key, and neither view nor database contains a plain secret', async () => {
    const put = await configure(app.key)
    expect([put.status, put.json]).toEqual([200, { ok: true }])
    const view = await app.call('GET', '/v1/me/memory-store')
    expect(view.json).toMatchObject({
      quota_mb: 1024,
      journal_ttl_days: 30,
      bytes_used: 0,
      endpoint: store.endpoint,
      bucket: store.bucket,
      access_key_masked: expect.any(String),
    })
    for (const text of [view.text, await app.dump()]) expect(text).not.toContain(store.secretKey)
  })

  test('MEM-10 MEM-43 a first configuration without credentials is 400 bad_request, and so is a number below one', async () => {
    const other = await app.otherOrg('Wrong Input')
    for (const more of [{ access_key: '', secret_key: '' }, { quota_mb: 0 }, { quota_mb: -1 }, { journal_ttl_days: 0 }, { journal_ttl_days: 1.5 }]) {
      const answer = await configure(other.key, more)
      expect([answer.status, answer.json.error.code]).toEqual([400, 'bad_request'])
    }
  })

  test('MEM-06 MEM-07 MEM-08 MEM-09 blank credentials keep the stored ones, and only a change of the place needs a confirmation', async () => {
    const other = await app.otherOrg('Repoint')
    await configure(other.key)
    await app.call('PUT', o('agents/a'), '12345', { token: other.key })
    expect((await configure(other.key, { access_key: '', secret_key: '', quota_mb: 9, journal_ttl_days: 2 })).status).toBe(200)
    const third = await configure(other.key, { bucket: 'elsewhere' })
    expect([third.status, third.json.error.code, third.json.usage]).toEqual([409, 'store_path_change_in_use', { bytes_used: 5, objects: 1 }])
    second.put(`org-${other.orgId}/agents/there`, 'xyz')
    const moved = await configure(other.key, { endpoint: second.endpoint, bucket: 'second', confirm_path_change: true })
    expect([moved.status, moved.json]).toEqual([200, { ok: true }])
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: other.key })).json).toMatchObject({
      endpoint: second.endpoint,
      bytes_used: 3,
      quota_mb: 9,
    })
    expect((await app.call('GET', o('agents/a'), undefined, { token: other.key })).status).toBe(404)
  })

  test('MEM-12 SCOPE-09 the list of paths names the prefixes that the credential may use', async () => {
    const inference = await app.newKey({ scope: 'inference' })
    const noUser = await app.newKey({ withUser: false })
    const agent = await app.newAgent('paths')
    for (const token of [app.key, inference.key, agent.token])
      expect((await app.call('GET', '/v1/me/memory/paths', undefined, { token })).json).toEqual({ scopes: { user: `users/${app.userId}/`, org: 'org/' } })
    for (const path of ['/v1/me/memory/paths', '/v1/me/memory/list', '/v1/me/memory-store', o('agents/a')]) {
      expect((await app.call('GET', path, undefined, { token: null, headers: { cookie: 'br_session=x' } })).status).toBe(401)
      for (const token of [inference.key, noUser.key, agent.token]) expect([200, 404]).toContain((await app.call('GET', path, undefined, { token })).status)
    }
    expect((await app.call('GET', '/v1/me/memory/paths', undefined, { token: noUser.key })).json.scopes.user).toBe(`users/key-${noUser.keyId}/`)
  })

  test('MEM-13 MEM-14 MEM-41 MEMX-01 SHAPE-33 a read returns the written bytes unchanged, with etag and provenance', async () => {
    const key = `users/${app.userId}/notes.md`
    const put = await app.call('PUT', o(key), 'hällo', { headers: { 'content-type': 'application/octet-stream' } })
    expect([put.status, put.json]).toEqual([200, { ok: true, key, size: 6 }])
    const got = await app.call('GET', o(key))
    expect([got.status, got.text]).toEqual([200, 'hällo'])
    expect(got.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(got.headers.get('x-content-type-options')).toBe('nosniff')
    expect(got.headers.get('etag')).toBe(put.headers.get('etag'))
    expect(got.headers.get('x-br-meta-user')).toBe(String(app.userId))
    const stored = store.objects.get(`org-${app.orgId}/${key}`)
    expect(stored?.metadata).toMatchObject({ 'br-user': String(app.userId), 'br-ts': expect.stringMatching(/^20.*Z$/) })
    expect(stored?.metadata).not.toHaveProperty('br-agent')
    await app.call('PUT', o('agents/labelled'), 'x', { headers: { 'x-br-agent-id': 'planner' } })
    expect(store.objects.get(`org-${app.orgId}/agents/labelled`)?.metadata['br-agent']).toBe('planner')
    const missing = await app.call('GET', o('agents/none'))
    expect([missing.status, missing.json.error.code]).toEqual([404, 'not_found'])
  })

  test('MEM-28 MEM-42 MPERM-06 MPERM-07 an agent token has the memory rights of the user of its key, and its writes name the agent', async () => {
    const agent = await app.newAgent('writer')
    const key = `users/${app.userId}/by-agent`
    await app.call('PUT', o(key), 'x', { token: agent.token, headers: { 'x-br-agent-id': 'somebody else' } })
    const got = await app.call('GET', o(key))
    expect([got.headers.get('x-br-meta-user'), got.headers.get('x-br-meta-agent')]).toEqual([String(app.userId), String(agent.id)])
    for (const token of [agent.token, (await app.newKey({ scope: 'inference' })).key, (await app.newKey({ withUser: false })).key]) {
      expect((await app.call('PUT', o('agents/open'), 'x', { token })).status).toBe(200)
      expect((await app.call('GET', o('agents/open'), undefined, { token })).status).toBe(200)
    }
  })

  test('MEM-21 MEM-23 MEM-27 MEM-29 MEM-37 MEM-38 MPERM-08 an invalid key is 400, and a key in a scope of others is 403 even without an object', async () => {
    for (const key of ['', '../a', 'a/../b', '/etc/passwd', 'a\\b', 'a\0b', 'a//b']) {
      const answer = await app.call('GET', o(key))
      expect([answer.status, answer.json.error.code]).toEqual([400, 'bad_memory_key'])
    }
    store.put(`org-${app.orgId}/users/999999/there`, 'x')
    for (const key of ['users/999999/there', 'users/999999/not-there', 'workspaces/1/records/a', 'workspaces/1/journal/a', 'shared/s/a', 'root-file'])
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const answer = await app.call(method, o(key), method === 'PUT' ? 'x' : undefined)
        expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden'])
      }
    for (const method of ['PUT', 'DELETE']) expect((await app.call(method, o('org/records/a'), method === 'PUT' ? 'x' : undefined)).status).toBe(403)
  })

  test('MEM-22 MPERM-01 every credential of the organisation reads org/records/', async () => {
    store.put(`org-${app.orgId}/org/records/policy.md`, 'be kind')
    for (const token of [app.key, (await app.newKey({ scope: 'inference', withUser: false })).key])
      expect((await app.call('GET', o('org/records/policy.md'), undefined, { token })).text).toBe('be kind')
  })

  test('MEM-15 MEM-16 MEM-17 the quota is exact to the byte, an overwrite counts the difference, and a repeated deletion frees the bytes once', async () => {
    const other = await app.otherOrg('Quota')
    await configure(other.key, { quota_mb: 1 })
    const used = async () => (await app.call('GET', '/v1/me/memory-store', undefined, { token: other.key })).json.bytes_used
    const mb = 1024 * 1024
    expect((await app.call('PUT', o('agents/a'), 'x'.repeat(mb), { token: other.key })).status).toBe(200)
    const over = await app.call('PUT', o('agents/b'), 'x', { token: other.key })
    expect([over.status, over.json.error.code]).toEqual([413, 'memory_quota_exceeded'])
    expect((await app.call('GET', o('agents/b'), undefined, { token: other.key })).status).toBe(404)
    await app.call('PUT', o('agents/a'), 'x'.repeat(100), { token: other.key })
    expect(await used()).toBe(100)
    for (const _ of [1, 2]) expect((await app.call('DELETE', o('agents/a'), undefined, { token: other.key })).status).toBe(200)
    expect(await used()).toBe(0)
    const large = await app.call('PUT', o('agents/c'), 'x'.repeat(3 * mb + 1), { token: other.key })
    expect([large.status, large.json.error.code]).toEqual([413, 'payload_too_large'])
  })

  test('MEM-18 MEM-36 a list has the relative keys of all readable objects, over all pages of the store, and refuses prefixes of others', async () => {
    const other = await app.otherOrg('Lists')
    await configure(other.key)
    for (let n = 0; n < 1100; n++) store.put(`org-${other.orgId}/agents/${String(n).padStart(4, '0')}`, 'x')
    store.put(`org-${other.orgId}/users/999999/hidden`, 'x')
    const all = await app.call('GET', '/v1/me/memory/list?prefix=', undefined, { token: other.key })
    expect(all.json.keys).toHaveLength(1100)
    expect(all.json.keys[1099]).toMatchObject({ key: 'agents/1099', size: 1, modified: expect.stringMatching(/Z$/) })
    expect((await app.call('GET', o(all.json.keys[0].key), undefined, { token: other.key })).text).toBe('x')
    expect((await app.call('GET', '/v1/me/memory/list?prefix=users/999999/', undefined, { token: other.key })).status).toBe(403)
  })

  test('MEM-30 another organisation reads only its own prefix', async () => {
    const other = await app.otherOrg('Isolated')
    await configure(other.key)
    await app.call('PUT', o('agents/secret'), 'mine')
    expect((await app.call('GET', o('agents/secret'), undefined, { token: other.key })).status).toBe(404)
    expect((await app.call('GET', '/v1/me/memory/list', undefined, { token: other.key })).json.keys).toEqual([])
  })

  test('MEM-40 when the store is down, calls are 502 and the used bytes do not change', async () => {
    const before = (await app.call('GET', '/v1/me/memory-store')).json.bytes_used
    store.faults.down = true
    const answer = await app.call('PUT', o('agents/down'), 'x')
    store.faults.down = false
    expect([answer.status, answer.json.error.code]).toEqual([502, 'memory_store_failed'])
    expect((await app.call('GET', '/v1/me/memory-store')).json.bytes_used).toBe(before)
  })

  test.each([
    ['with', false],
    ['without', true],
  ])(
    'MEMX-02 MEMX-03 compare-and-swap %s conditions of the store: 412 says what is there and fifty writers lose nothing',
    async (_name, noConditions) => {
      const other = await app.otherOrg(`Swap ${noConditions ? 'old' : 'new'}`)
      const token = other.key
      store.faults.noConditions = noConditions
      await configure(token)
      const first = await app.call('PUT', o('agents/n'), '', { token, headers: { 'if-none-match': '*' } })
      expect(first.status).toBe(200)
      const again = await app.call('PUT', o('agents/n'), 'x', { token, headers: { 'if-none-match': '*' } })
      expect([again.status, again.json]).toMatchObject([
        412,
        { error: { code: 'memory_conflict' }, current_etag: first.headers.get('etag'), author: { user: String(other.userId) } },
      ])
      expect((await app.call('DELETE', o('agents/n'), undefined, { token, headers: { 'if-match': '"other"' } })).status).toBe(412)
      await Promise.all(
        Array.from({ length: 50 }, async (_, n) => {
          for (let tries = 0; tries < 300; tries++) {
            const read = await app.call('GET', o('agents/n'), undefined, { token })
            const put = await app.call('PUT', o('agents/n'), `${read.text}${n};`, { token, headers: { 'if-match': read.headers.get('etag') ?? '' } })
            if (put.status === 200) return
            expect(put.json.error.code).toBe('memory_conflict')
          }
          throw new Error('a writer never got its turn')
        }),
      )
      store.faults.noConditions = false
      const numbers = (await app.call('GET', o('agents/n'), undefined, { token })).text.split(';').filter(Boolean).map(Number)
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
    },
    120_000,
  )

  test('only a full key with a user may configure the store', async () => {
    for (const token of [
      (await app.newKey({ scope: 'inference' })).key,
      (await app.newKey({ withUser: false })).key,
      (await app.newAgent('configurer')).token,
    ]) {
      const answer = await configure(token)
      expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden'])
    }
  })
})
