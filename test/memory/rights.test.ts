/**
 * Rights in shared memory: tries every verb on every path as every kind of caller over HTTP, and compares the results with rights.txt, which people
 * maintain.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { answerOf, listOf, memoryCalls, pathOf } from './rights-people.ts'
import { makeWorld, type World } from './rights-world.ts'

const lines = readFileSync(new URL('./rights.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter(line => line.trim() !== '' && !line.startsWith('#'))
  .map(line => line.trim().split(/\s+/))
const [columns = [], ...rows] = lines

/** Ids of the requirements that the table shows, each with at least one line. */
const shownIds = ['MPERM-01', 'MPERM-02', 'MPERM-03', 'MPERM-04', 'MPERM-05', 'MPERM-06', 'MPERM-07', 'MPERM-08']

let app: TestApp
let store: S3TestServer
let world: World
beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort, ANON_RPM: '100000' } })
  world = await makeWorld(app, store)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

/** Finds the actual value of one cell: tries to read, write, delete and list, on an object of its own. */
async function met(token: string, folder: string, name: string): Promise<string> {
  const { put, get, remove } = memoryCalls(app)
  const key = `${folder}ünï ${name}.md`
  const inBucket = `org-${app.orgId}/${key}`
  const text = (): string | undefined => store.objects.get(inBucket)?.bytes.toString()
  const cellOf = (answer: string, happened: () => string): string => {
    if (answer === '200') return happened()
    return { '404 not_found': 'n', '403 forbidden': '-', '401 invalid_api_key': '1' }[answer] ?? `[${answer}]`
  }
  store.put(inBucket, 'before')
  const read = await app.call('GET', pathOf(key), undefined, { token })
  const missing = await get(token, `${folder}missing.md`)
  const reads = cellOf(answerOf(read), () => (read.text === 'before' ? 'r' : `[read ${read.text}]`))
  // A missing object is distinguished from a forbidden one only where the caller may read.
  if (missing !== (reads === 'r' ? '404 not_found' : answerOf(read))) return `[missing: ${missing}]`
  const list = await app.call('GET', listOf(folder), undefined, { token })
  const lists = cellOf(answerOf(list), () => (list.json.keys.some((each: { key: string }) => each.key === key) ? 'l' : 'o'))
  const writes = cellOf(await put(token, key, 'after'), () => (text() === 'after' ? 'w' : 'o'))
  if (writes !== 'w' && text() !== 'before') return '[changed although refused]'
  const deletes = cellOf(await remove(token, key), () => (text() === undefined ? 'd' : 'o'))
  if (deletes !== 'd' && text() === undefined) return '[deleted although refused]'
  return `${reads}${writes}${deletes}${lists}`
}

describe('rights in shared memory: MPERM-01 MPERM-02 MPERM-03 MPERM-04 MPERM-05 MPERM-06 MPERM-07 MPERM-08 MEM-24 MEM-25 MEM-26', () => {
  test('the list has exactly one cell for every caller and path', () => {
    expect(columns).toEqual(Object.keys(world.callers))
    expect([...new Set(rows.map(([id]) => id))].sort()).toEqual(shownIds)
    for (const [, path, ...cells] of rows) {
      expect(world.folderOf(path ?? ''), path).not.toContain('<')
      expect(cells.filter(cell => /^[rn1-][wo1-][do1-][lo1-]$/.test(cell)).length, path).toBe(columns.length)
    }
    expect(new Set(rows.map(([, path]) => path)).size).toBe(rows.length)
  })

  for (const [id = '', path = '', ...cells] of rows)
    test(`${id} ${path}`, async () => {
      const folder = world.folderOf(path)
      const seen = await Promise.all(Object.entries(world.callers).map(async ([name, token]) => [name, await met(token, folder, name)]))
      expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(columns.map((name, at) => [name, cells[at]])))
    })

  test('append and restore need the rights of a write, search needs those of a list, and history needs those of a read', async () => {
    const anyVersion = '0190e1f0-0000-7000-8000-000000000000'
    /** Returns the expected results of a cell. An operation that the cell does not allow has the result of its refusal. */
    const expected = (cell: string, allowed: readonly string[]): readonly string[] =>
      cell === '1' ? ['401 invalid_api_key'] : cell === '-' ? ['403 forbidden'] : allowed
    const check = async (path: string, name: string, token: string, cell: string): Promise<void> => {
      const [read = '', write = '', , list = ''] = cell
      const folder = world.folderOf(path)
      const key = `${folder}known to ${name}.md`
      store.put(`org-${app.orgId}/${key}`, 'a needle')
      const query = (row: string, asked: Record<string, string>) => app.call('GET', `/v1/me/memory/${row}?${new URLSearchParams(asked)}`, undefined, { token })
      const search = await query('search', { q: 'needle', prefix: folder })
      const answers: Record<string, readonly [seen: string, allowed: readonly string[]]> = {
        append: [answerOf(await app.call('POST', '/v1/me/memory/append', { path: folder.slice(0, -1), content: 'x' }, { token })), expected(write, ['201'])],
        restore: [answerOf(await app.call('POST', '/v1/me/memory/restore', { key, version: anyVersion }, { token })), expected(write, ['404 not_found'])],
        history: [answerOf(await query('history', { key })), expected(read, ['200', '404 not_found'])],
        version: [answerOf(await query('history', { key, version: anyVersion })), expected(read, ['404 not_found'])],
        search: [answerOf(search), expected(list, ['200'])],
      }
      for (const [what, [seen, allowed]] of Object.entries(answers)) expect(allowed, `${what} at ${path} by ${name}`).toContain(seen)
      if (search.status === 200) expect(search.json.matches.length > 0, `matches at ${path} by ${name}`).toBe(list === 'l')
    }
    const oneOfEach = rows.filter(([id], at) => rows.findIndex(([other]) => other === id) === at)
    // The calls run one after the other, because a process allows few concurrent searches.
    for (const [, path = '', ...cells] of oneOfEach)
      for (const [at, [name, token]] of Object.entries(world.callers).entries()) await check(path, name, token, cells[at] ?? '')
  })

  test('a list of a broad prefix has exactly the readable objects below it, and the beginning of a name does not match other names', async () => {
    const { both, stranger, other } = world.callers
    const keys = ['org/records/', 'workspaces/<crew>/records/', 'workspaces/<crew>/journal/', 'shared/<space>/', 'users/<both>/', 'agents/'].map(world.folderOf)
    const hidden = [
      'workspaces/<archived>/journal/',
      'shared/<space>2/',
      'shared/<retired>/',
      'users/<both>0/',
      'users/key-<robot>/',
      'elsewhere/',
      '.hidden/',
    ].map(world.folderOf)
    for (const folder of [...keys, ...hidden]) store.put(`org-${app.orgId}/${folder}listed`, 'x')
    const found = async (token: string, prefix: string): Promise<string[]> =>
      (await app.call('GET', listOf(prefix), undefined, { token })).json.keys
        .map(({ key }: { key: string }) => key)
        .filter((key: string) => key.endsWith('/listed'))
    const all = keys.map(folder => `${folder}listed`).sort()
    expect(await found(both, '')).toEqual(all)
    for (const prefix of [
      'o',
      'org',
      'org/',
      'w',
      'workspaces/',
      'sh',
      'shared/',
      'u',
      'users/',
      'agents',
      ...keys,
      ...keys.map(folder => folder.slice(0, -1)),
    ])
      expect(await found(both, prefix), prefix).toEqual(all.filter(key => key.startsWith(prefix)))
    expect(await found(stranger, '')).toEqual(all.filter(key => /^(org|agents)/.test(key)))
    expect(await found(other, '')).toEqual([])
    for (const folder of hidden)
      for (const prefix of [folder, `${folder}listed`]) expect(await memoryCalls(app).list(both, prefix), prefix).toBe('403 forbidden')
  })

  test('a path in another spelling (case, width, encoding, dots, slashes) is another path or invalid', async () => {
    const { both } = world.callers
    const { get, put, remove } = memoryCalls(app)
    const own = world.folderOf('users/<both>/')
    await put(both, `${own}spelled`)
    expect(answerOf(await app.call('GET', `/v1/me/memory/o?key=${own.replace('u', '%75')}spelled`, undefined, { token: both }))).toBe('200')
    const owner = own.slice('users/'.length, -1)
    const elsewhere = [
      `Users/${owner}/x`,
      `ｕsers/${owner}/x`,
      `users/0${owner}/x`,
      `users/+${owner}/x`,
      `users/${owner} /x`,
      `users/${encodeURIComponent(own)}x`,
      `users%2F${owner}%2Fx`,
    ]
    for (const key of [
      ...elsewhere,
      `shared/${world.names.space.toUpperCase()}/x`,
      `users/${owner}`,
      'agents',
      'org/records',
      `workspaces/${world.names.crew}/journal`,
    ])
      for (const answer of [await get(both, key), await put(both, key), await remove(both, key)]) expect(answer, key).toBe('403 forbidden')
    for (const key of [`${own}`, `${own}./x`, `${own}../${owner}/x`, `/${own}x`, `${own}/x`, `agents/../${own}x`, `users\\${owner}\\x`, `${own}x\u200b`])
      for (const answer of [await get(both, key), await put(both, key), await remove(both, key)]) expect(answer, key).toBe('400 bad_memory_key')
    expect(answerOf(await app.call('GET', `/v1/me/memory/o?key=${own}spelled&key=${own}spelled`, undefined, { token: both }))).toBe('400 bad_request')
  })

  test('a change of a team applies to the next call, also for keys that are bound to the workspace', async () => {
    const { get } = memoryCalls(app)
    const key = `${world.folderOf('workspaces/<crew>/journal/')}binding`
    store.put(`org-${app.orgId}/${key}`, 'x')
    const { stranger, exmate } = world.callers
    const team = (member_uids: number[]) => app.call('PATCH', `/me/workspaces/${world.names.crew}`, { member_uids }, { cookie: world.ownerCookie })
    for (const [who, userId] of [
      [stranger, world.userIds.stranger],
      [exmate, world.userIds.exmate],
    ] as const) {
      expect(await get(who, key)).toBe('403 forbidden')
      await team([...world.teamIds, userId])
      expect(await get(who, key)).toBe('200')
      await team([...world.teamIds])
      expect(await get(who, key)).toBe('403 forbidden')
    }
  })
})
