import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Db, statement } from '../../../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { type ListedServer, startListedServer, toolOf } from './listed-server.ts'

const makeDue = statement<[orgId: number]>('test.make_syncs_due', `update tool_servers set next_sync_at = now() - interval '1 minute' where org_id = $1::int`)
const countDue = statement<[orgId: number], { due: number }>(
  'test.count_due_syncs',
  `select count(*)::int as "due" from tool_servers where org_id = $1::int and next_sync_at <= now() and state = 'on' and deleted_at is null`,
)

let app: TestApp
let servers: ListedServer[]
let owner: string
const db = (): Db => app.db

beforeAll(async () => {
  servers = await Promise.all([startListedServer('modern'), startListedServer('legacy'), startListedServer('modern'), startListedServer('modern')])
  app = await startApp({ env: { OUTBOUND_ALLOW: servers.map(({ hostPort }) => hostPort).join(',') } })
  owner = await app.signIn()
})
afterAll(async () => {
  await app.stop()
  await Promise.all(servers.map(server => server.close()))
})

const as = (method: string, path: string, body?: unknown) => app.call(method, `/me/tool-servers${path}`, body, { cookie: owner })
const listed = async () => (await as('GET', '')).json.servers as { id: string; name: string; last_sync_at: string; last_error: string | null; tools: object }[]

test('the job reads every server that is due, a server that hangs delays no other, and one that is off is not read', async () => {
  for (const [index, { url }] of servers.entries()) expect((await as('POST', '', { name: `Server ${index}`, url })).status).toBe(201)
  const [hanging, second, third, off] = await listed()
  await as('POST', `/${off?.id}/off`)
  for (const server of servers) server.tools = [...server.tools, toolOf('later')]
  const first = servers[0] as ListedServer
  first.hangs = true
  await db().exec(makeDue, app.orgId)
  const run = app.gateway.app.jobs.runOnce('tools.sync')
  await until(async () => (await listed()).filter(({ tools }) => JSON.stringify(tools).includes('"pending":3')).length === 2, 8_000)
  expect((await listed()).find(({ id }) => id === hanging?.id)).toMatchObject({ tools: { pending: 2 } })
  for (const each of [second, third]) expect((await listed()).find(({ id }) => id === each?.id)?.last_sync_at).not.toBe(each?.last_sync_at)
  expect((await listed()).find(({ id }) => id === off?.id)).toMatchObject({ state: 'off', tools: { pending: 2 } })
  expect((await db().one(countDue, app.orgId)).due, 'each claim moves the next sync').toBe(0)
  // The connection of the hanging server breaks, so that the run need not wait for the end of its time.
  await first.close()
  servers[0] = await startListedServer('modern')
  await run
  expect((await listed()).find(({ id }) => id === hanging?.id)).toMatchObject({ last_error: 'unavailable', tools: { pending: 2 } })
})

test('fifty servers of forty tools are read by the job within ten seconds', async () => {
  // A second organisation, because the number of servers is limited.
  const other = await app.otherOrg('Many servers')
  const cookie = await app.signIn(other.userId, other.orgId)
  const one = servers[2] as ListedServer
  one.tools = Array.from({ length: 40 }, (_, index) => toolOf(`t${index}`))
  for (let index = 0; index < 50; index++)
    expect((await app.call('POST', '/me/tool-servers', { name: `Server ${index}`, url: one.url }, { cookie })).status).toBe(201)
  one.tools = Array.from({ length: 40 }, (_, index) => toolOf(`t${index}`, { description: 'Changed.' }))
  await db().exec(makeDue, other.orgId)
  const beganMs = Date.now()
  await app.gateway.app.jobs.runOnce('tools.sync')
  const { servers: read } = (await app.call('GET', '/me/tool-servers', undefined, { cookie })).json
  expect(read.every(({ tools }: { tools: { pending: number } }) => tools.pending === 40)).toBe(true)
  expect((await db().one(countDue, other.orgId)).due).toBe(0)
  expect(Date.now() - beganMs).toBeLessThan(10_000)
}, 30_000)
