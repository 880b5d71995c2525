import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BrigadeError } from '../../../src/agents/toolkit/brigade-error.ts'
import { type MemoryClient, memoryClient } from '../../../src/agents/toolkit/memory-client/memory-client.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { countingFetch } from './setup.ts'

let app: TestApp
let owner: MemoryClient

beforeAll(async () => {
  app = await startApp()
  owner = memoryClient({ baseUrl: app.baseUrl, credential: app.key })
  await expect(owner.read('agents/early')).rejects.toMatchObject({ code: 'memory_not_configured' })
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
})
afterAll(() => app.stop())

async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Returns a client that records its requests. */
function counted(token = app.key): { memory: MemoryClient; sent: string[] } {
  const sent: string[] = []
  return { memory: memoryClient({ baseUrl: `${app.baseUrl}/`, credential: token, fetch: countingFetch(sent) }), sent }
}

test('a written object is read with its bytes, etag and provenance, and a missing object is null', async () => {
  const agent = await app.newAgent('writer ನ')
  const memory = memoryClient({ baseUrl: app.baseUrl, credential: agent.token })
  const key = 'agents/ನಾನು & you?#%.md'
  const written = await memory.write(key, '\ufeffಹಲೋ\r\n')
  expect(written).toMatchObject({ ok: true, key, size: 14 })
  const read = await memory.read(key)
  expect(read).toMatchObject({
    key,
    text: '\ufeffಹಲೋ\r\n',
    etag: written.etag,
    provenance: {
      user: String(app.userId),
      agent: String(agent.id),
      verified: true,
      agentName: 'writer ನ',
      client: null,
      promotedBy: null,
      sources: [],
      restoredFrom: null,
    },
  })
  expect(read?.provenance.sha256).toBe(createHash('sha256').update('\ufeffಹಲೋ\r\n').digest('hex'))
  expect(Date.parse(read?.provenance.at ?? '')).toBeGreaterThan(0)
  const bytes = Uint8Array.from([0, 255, 13, 10, 128])
  await memory.write('agents/bytes', bytes)
  expect((await memory.read('agents/bytes'))?.bytes).toEqual(bytes)
  await memory.write('agents/empty', '')
  expect(await memory.read('agents/empty')).toMatchObject({ text: '' })
  expect(await memory.read('agents/none')).toBeNull()
  expect(await memory.read(key, { version: 'none' })).toBeNull()
  await memory.remove(key)
  await memory.remove(key)
  expect(await memory.read(key)).toBeNull()
})

test('refusals are BrigadeErrors with a code, and conditions of writes are enforced', async () => {
  const { etag } = await owner.write('agents/c', 'one', { createOnly: true })
  for (const [run, code, status] of [
    [() => owner.write('agents/c', 'two', { createOnly: true }), 'memory_conflict', 412],
    [() => owner.write('agents/c', 'two', { ifMatch: '"other"' }), 'memory_conflict', 412],
    [() => owner.remove('agents/c', { ifMatch: '"other"' }), 'memory_conflict', 412],
    [() => owner.write('agents/none', 'x', { ifMatch: '*' }), 'memory_conflict', 412],
    [() => owner.read('users/999999/x'), 'forbidden', 403],
    [() => owner.write('org/records/x', ''), 'forbidden', 403],
    [() => owner.read('../x'), 'bad_memory_key', 400],
    [() => allOf(owner.list('users/999999/')), 'forbidden', 403],
    [() => owner.restore('agents/c', 'none'), 'not_found', 404],
    [() => owner.shares.retire('nobodys'), 'not_found', 404],
    [() => memoryClient({ baseUrl: app.baseUrl, credential: 'br-wrong' }).paths(), 'invalid_api_key', 401],
  ] as const) {
    const error = await run().then(
      () => expect.fail(code),
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(BrigadeError)
    expect(error).toMatchObject({ code, status })
  }
  await owner.write('agents/c', 'two', { ifMatch: etag })
  await owner.write('agents/c', 'three', { ifMatch: `sha256:${createHash('sha256').update('two').digest('hex')}` })
  await owner.remove('agents/c', { ifMatch: (await owner.read('agents/c'))?.etag })
  await expect(owner.read('agents/c', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
})

test('the edits of concurrent writers are all kept, including the first one', async () => {
  const [one, two] = [counted(), counted((await app.newAgent('editor')).token)]
  const add = (memory: MemoryClient, line: string) => memory.edit('agents/list', current => `${current?.text ?? ''}${line}\n`)
  const lines = Array.from({ length: 12 }, (_, at) => `line ${at}`)
  await Promise.all(lines.map((line, at) => add(at % 2 === 0 ? one.memory : two.memory, line)))
  expect((await owner.read('agents/list'))?.text.trim().split('\n').sort()).toEqual(lines.sort())
  expect([...one.sent, ...two.sent].filter(line => line.startsWith('412')).length).toBeGreaterThan(0)
})

test('an edit may change nothing, delete the object, fail, or give up after the given number of attempts', async () => {
  await owner.write('agents/e', 'x')
  expect(await owner.edit('agents/e', () => undefined)).toBeNull()
  expect(await owner.edit('agents/none', () => null)).toBeNull()
  await expect(owner.edit('agents/e', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect((await owner.read('agents/e'))?.text).toBe('x')
  let runs = 0
  const losing = owner.edit(
    'agents/e',
    async current => {
      runs++
      await owner.write('agents/e', `${current?.text}!`)
      return 'mine'
    },
    { attempts: 3 },
  )
  await expect(losing).rejects.toMatchObject({ code: 'memory_conflict', status: 412 })
  expect([runs, (await owner.read('agents/e'))?.text]).toEqual([3, 'x!!!'])
  expect(await owner.edit('agents/e', () => null)).toBeNull()
  expect(await owner.read('agents/e')).toBeNull()
  const stop = new AbortController()
  const stopped = owner.edit(
    'agents/e',
    async () => {
      await owner.write('agents/e', 'theirs')
      stop.abort(new Error('stopped'))
      return 'mine'
    },
    { signal: stop.signal },
  )
  await expect(stopped).rejects.toThrow('stopped')
})

test('lists, searches and histories continue over all pages, and fetch only the pages that are read', async () => {
  for (let at = 0; at < 5; at++) await owner.write(`agents/many/${at}/n.md`, `needle ${at}\nhay\nNeedle again`)
  const { memory, sent } = counted()
  const keys = (await allOf(memory.list('agents/many/', { limit: 2 }))).map(found => found.key)
  expect(keys).toEqual([0, 1, 2, 3, 4].map(at => `agents/many/${at}/n.md`))
  expect(sent).toHaveLength(3)
  for await (const _first of memory.list('agents/many/', { limit: 2 })) break
  expect(sent).toHaveLength(4)
  expect(await memory.listPage('agents/many/', { delimiter: '/', limit: 3 })).toMatchObject({
    keys: [],
    prefixes: ['agents/many/0/', 'agents/many/1/', 'agents/many/2/'],
  })
  expect(await allOf(memory.list('agents/many/', { author: 'agent:999999' }))).toEqual([])
  expect(await allOf(memory.list('agents/many/', { modifiedSince: '2000-01-01' }))).toHaveLength(5)
  expect((await allOf(memory.list())).length).toBeGreaterThan(4)
  expect(await allOf(memory.search('needle', { prefix: 'agents/many/', limit: 3 }))).toHaveLength(10)
  expect(await allOf(memory.search('^needle [23]$', { prefix: 'agents/many/', regex: true, caseSensitive: true }))).toMatchObject([
    { line: 1, snippet: 'needle 2' },
    { snippet: 'needle 3' },
  ])
  expect((await memory.searchPage('hay', { prefix: 'agents/many/' })).scanned.objects).toBe(5)
})

test('earlier versions can be listed, read and restored, and erasing removes the history', async () => {
  for (const text of ['one', 'two', 'three']) await owner.write('agents/h', text)
  const versions = await allOf(owner.history('agents/h'))
  expect(versions.map(({ how, current }) => [how, current])).toEqual([
    ['put', true],
    ['put', false],
    ['put', false],
  ])
  const first = versions.at(-1)?.version ?? ''
  expect((await owner.read('agents/h', { version: first }))?.text).toBe('one')
  expect(await owner.restore('agents/h', first)).toMatchObject({ ok: true, key: 'agents/h', size: 3 })
  expect(await owner.read('agents/h')).toMatchObject({ text: 'one', provenance: { restoredFrom: first } })
  expect((await owner.historyPage('agents/h', { limit: 2 })).next_cursor).not.toBeNull()
  await owner.remove('agents/h', { eraseHistory: true })
  await expect(allOf(owner.history('agents/h'))).rejects.toMatchObject({ code: 'not_found' })
})

test('the client reads paths, appends entries, writes records and manages shares', async () => {
  expect(await owner.paths()).toMatchObject({ scopes: { user: `users/${app.userId}/`, org: 'org/' } })
  const entries = await Promise.all(['a', 'b', 'c'].map(text => owner.append('agents/log', text)))
  expect((await allOf(owner.list('agents/log/'))).map(found => found.key).sort()).toEqual(entries.map(entry => entry.key).sort())
  const promoted = await owner.promote('how we, work.md', 'Well.', { sourceKeys: ['agents/a,b', 'agents/ನ'], createOnly: true })
  expect(await owner.read(promoted.key)).toMatchObject({ text: 'Well.', etag: promoted.etag, provenance: { sources: ['agents/a,b', 'agents/ನ'] } })
  await expect(owner.promote('how we, work.md', 'No.', { createOnly: true })).rejects.toMatchObject({ code: 'memory_conflict' })
  const { userId } = await app.newMember('member')
  expect(await owner.shares.create('plans')).toMatchObject({ space: 'plans', owner: app.userId, member_uids: [], role: 'owner' })
  expect((await owner.shares.grant('plans', userId)).member_uids).toEqual([userId])
  expect((await owner.shares.revoke('plans', userId)).member_uids).toEqual([])
  await owner.shares.create('more', [userId])
  expect((await allOf(owner.shares.list())).map(share => share.space)).toEqual(['more', 'plans'])
  expect(await owner.shares.page({ all: true, limit: 1 })).toMatchObject({ shares: [{ space: 'more' }] })
  await owner.shares.retire('more')
  await expect(owner.shares.create('more')).rejects.toMatchObject({ code: 'space_retired' })
})
