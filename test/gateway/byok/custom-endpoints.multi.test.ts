import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Sessions } from '../../../src/gateway/access/sessions.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db.ts'
import { ControlLog } from '../../../src/platform/db-control-log.ts'
import { systemIds } from '../../../src/platform/ids.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'

/** Longest time from a change on one process to its effect on another. */
const effectDeadlineMs = 3000

const ownerOf = statement<[orgId: number], { userId: number }>(
  'test.owner_with_servers',
  `select user_id as "userId" from org_members where org_id = $1::int and role = 'owner'`,
)

describe.runIf(onPostgres)('custom endpoints over two processes', () => {
  let fleet: Fleet
  let server: OwnServer
  let here: GatewayProcess
  let there: GatewayProcess
  let cookie: string
  beforeAll(async () => {
    const masterKey = randomBytes(32)
    server = await startOwnServer()
    server.behave('key-of-our-server')
    fleet = await startFleet({ MASTER_KEY: masterKey.toString('base64'), OUTBOUND_ALLOW: server.hostPort })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    const { db, orgId } = fleet
    const controlLog = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: 1000 })
    const more = { ttlSeconds: 3600, cacheTtlMs: 1000, baseUrl: () => 'http://brigade.test' }
    const sessions = new Sessions({ db, clock: systemClock, ids: systemIds, controlLog, masterKey, ...more })
    cookie = (await sessions.create((await db.one(ownerOf, orgId)).userId, orgId)).cookie
  })
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
  })

  const change = async (method: string, path: string, body?: object) => {
    const options = body === undefined ? { headers: { cookie } } : { headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(here.baseUrl + path, { method, ...options })
    expect(response.ok).toBe(true)
    return (await response.json()) as { endpoint: { id: number } }
  }
  const statusOf = async (process: GatewayProcess) =>
    (
      await call(process, fleet.key, 'POST', '/v1/chat/completions', {
        model: 'fixed-model',
        provider: 'byoe:ours',
        messages: [{ role: 'user', content: 'hi' }],
      })
    ).status

  test('an endpoint that is registered or removed at one process is there or gone at the other within seconds', async () => {
    expect(await statusOf(there)).toBe(400)
    const wish = { name: 'Ours', model: 'fixed-model', base_url: server.url, upstream_model: 'm', key: 'key-of-our-server' }
    const { endpoint } = await change('POST', '/me/endpoints', wish)
    expect(await statusOf(here)).toBe(200)
    await until(async () => (await statusOf(there)) === 200, 'the other process knows the endpoint', effectDeadlineMs)
    await change('DELETE', `/me/endpoints/${endpoint.id}`)
    expect(await statusOf(here)).toBe(400)
    await until(async () => (await statusOf(there)) === 400, 'the other process has dropped it', effectDeadlineMs)
  })
})
