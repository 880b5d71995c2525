import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const openMs = 1_500
const addEndpoint = statement<[orgId: number]>(
  'test.outages_multi_endpoint',
  `insert into webhook_endpoints (org_id, url, subscribe_all, secret_sealed, created_at) values ($1::int, 'https://receiver.invalid', true, '', now())`,
)
const told = statement<[orgId: number], { count: bigint }>(
  'test.outages_multi_told',
  `select count(*) as "count" from webhook_events where org_id = $1::int and type = 'provider.circuit_open'`,
)
const outages = statement<[], { route: string }>('test.outages_multi_open', 'select route from circuit_outages')

describe.runIf(onPostgres)('an outage over several processes', () => {
  let fleet: Fleet
  let sick: UpstreamServer
  const folder = mkdtempSync(join(tmpdir(), 'brigade-outages-'))

  beforeAll(async () => {
    sick = await startUpstream()
    const file = join(folder, 'brigade.config.json')
    const route = { provider: 'sick', input_inr_per_mtok: 1, output_inr_per_mtok: 1, source: 'test', as_of: '2026-01-01' }
    const model = { id: 'm', kind: 'chat', context_length: 1000, routes: [route] }
    writeFileSync(file, JSON.stringify({ providers: [{ id: 'sick', base_url: sick.url, auth: 'none', residency: 'global' }], models: [model] }))
    fleet = await startFleet({ CONFIG_FILE: file, CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: String(openMs) })
    await fleet.db.exec(addEndpoint, fleet.orgId)
  }, 60_000)
  afterAll(async () => {
    await fleet?.stop()
    await sick?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (member: GatewayProcess) => {
    const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }
    return (await call(member, fleet.key, 'POST', '/v1/chat/completions', body)).status
  }
  const isAvailable = async (member: GatewayProcess): Promise<boolean> => (await call(member, fleet.key, 'GET', '/v1/models/m')).json.routes[0].available
  const count = async () => (await fleet.db.one(told, fleet.orgId)).count

  test('an outage is reported once, even when all processes see it, its probes fail and a new process fails too. The next outage is reported again', async () => {
    const members = await Promise.all([fleet.start(), fleet.start()])
    sick.script(() => ({ status: 500 }))
    await Promise.all(members.flatMap(member => Array.from({ length: 6 }, () => ask(member))))
    await until(async () => (await count()) === 1n, 'the outage is told', 10_000)
    for (const member of members) await until(() => isAvailable(member), 'the circuit is half-open', openMs + 5_000)
    await Promise.all(members.map(ask))
    const late = await fleet.start()
    for (let calls = 0; calls < 4; calls++) await ask(late)
    expect(await count()).toBe(1n)
    sick.reset()
    await until(async () => (await ask(late)) === 200, 'the route serves', openMs + 5_000)
    await until(async () => (await fleet.db.many(outages)).length === 0, 'the outage is over', 10_000)
    for (const member of [...members, late]) await until(async () => (await ask(member)) === 200, 'it serves everywhere', 10_000)
    sick.script(() => ({ status: 500 }))
    for (let calls = 0; calls < 4; calls++) await ask(late)
    await until(async () => (await count()) === 2n, 'the next outage is told', 10_000)
  }, 60_000)
})
