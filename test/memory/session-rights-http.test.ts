/** Rights in shared memory with a session: each person reaches exactly what rights.txt gives to a full key of that person. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { answerOf } from './rights-people.ts'
import { makeWorld, type World } from './rights-world.ts'

const [columns = [], ...rows] = readFileSync(new URL('./rights.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter(line => line.trim() !== '' && !line.startsWith('#'))
  .map(line => line.trim().split(/\s+/))

let app: TestApp
let store: S3TestServer
let world: World
beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort, ANON_RPM: '100000', CONSOLE_RPM: '100000' } })
  world = await makeWorld(app, store)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})

const o = (key: string): string => `/me/memory/o?key=${encodeURIComponent(key)}`
const search = (row: string, asked: Record<string, string>): string => `/me/memory/${row}?${new URLSearchParams(asked)}`

/** Returns the cell of one person and folder: what a read, a write, a deletion and a list did. */
async function met(cookie: string, folder: string, name: string): Promise<string> {
  const key = `${folder}session of ${name}.md`
  const inBucket = `org-${app.orgId}/${key}`
  const text = (): string | undefined => store.objects.get(inBucket)?.bytes.toString()
  const ask = (method: string, path: string, body?: string) => app.call(method, path, body, { cookie })
  const cellOf = (answer: string, happened: () => string): string =>
    answer === '200' ? happened() : ({ '404 not_found': 'n', '403 forbidden': '-', '401 no_session': '1' }[answer] ?? `[${answer}]`)
  store.put(inBucket, 'before')
  const read = await ask('GET', o(key))
  const list = await ask('GET', search('list', { prefix: folder }))
  const writes = cellOf(answerOf(await ask('PUT', o(key), 'after')), () => (text() === 'after' ? 'w' : 'o'))
  const deletes = cellOf(answerOf(await ask('DELETE', o(key))), () => (text() === undefined ? 'd' : 'o'))
  if (writes !== 'w' && deletes !== 'd' && text() !== 'before') return '[changed although refused]'
  const reads = cellOf(answerOf(read), () => (read.text === 'before' ? 'r' : `[read ${read.text}]`))
  return `${reads}${writes}${deletes}${cellOf(answerOf(list), () => (list.json.keys.some((each: { key: string }) => each.key === key) ? 'l' : 'o'))}`
}

describe('rights in shared memory with a session', () => {
  for (const [id = '', path = '', ...cells] of rows)
    test(`a person reaches with a session what a full key of the person reaches: ${id} ${path}`, async () => {
      const people = Object.entries(world.cookies)
      const seen = await Promise.all(people.map(async ([name, cookie]) => [name, await met(cookie, world.folderOf(path), name)]))
      expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(people.map(([name]) => [name, cells[columns.indexOf(name)]])))
    })

  test('CAPI-01 append, restore, history, versions and search with a session have the rights of their path', async () => {
    const anyVersion = '0190e1f0-0000-7000-8000-000000000000'
    for (const folder of ['workspaces/<crew>/journal/', 'shared/<space>/', 'users/<both>/', 'org/records/'].map(world.folderOf)) {
      const key = `${folder}needle.md`
      store.put(`org-${app.orgId}/${key}`, 'a needle')
      const answers = async (cookie: string) => ({
        append: answerOf(await app.call('POST', '/me/memory/append', { path: folder.slice(0, -1), content: 'x' }, { cookie })),
        restore: answerOf(await app.call('POST', '/me/memory/restore', { key, version: anyVersion }, { cookie })),
        version: answerOf(await app.call('GET', search('history', { key, version: anyVersion }), undefined, { cookie })),
        search: answerOf(await app.call('GET', search('search', { q: 'needle', prefix: folder }), undefined, { cookie })),
      })
      const refused = { append: '403 forbidden', restore: '403 forbidden', version: '403 forbidden', search: '403 forbidden' }
      const isRecords = folder === 'org/records/'
      const readable = { ...refused, version: '404 not_found', search: '200' }
      expect(await answers(world.cookies.both), folder).toEqual(isRecords ? readable : { ...readable, append: '201', restore: '404 not_found' })
      expect(await answers(world.cookies.stranger), folder).toEqual(isRecords ? readable : refused)
    }
  })

  test('a session lists its scopes with every workspace of the person, and a key is no session', async () => {
    const paths = async (cookie: string) => (await app.call('GET', '/me/memory/paths', undefined, { cookie })).json
    const { crew, both, space } = world.names
    expect(await paths(world.cookies.both)).toEqual({
      scopes: { user: `users/${both}/`, workspace: `workspaces/${crew}/`, org: 'org/', shared: [`shared/${space}/`], workspaces: [`workspaces/${crew}/`] },
    })
    expect((await paths(world.cookies.stranger)).scopes).toMatchObject({ org: 'org/', workspaces: [] })
    expect(answerOf(await app.call('GET', '/me/memory/paths'))).toBe('401 no_session')
  })
})
