import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { startTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.ts'
import { until } from '../../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const openMs = 1_500
/** A deadline well above the interval of the quarantine job, which is five seconds. */
const healedMs = 20_000

const endSoon = statement<[route: string, until: Date]>(
  'test.end_maintenance_soon',
  'update route_maintenance set until = $2::timestamptz where route = $1::text',
)
const addStale = statement<[]>(
  'test.add_stale_maintenance',
  `insert into route_maintenance (route, set_by, reason, strikes, since, until)
   values ('well/m', 'gateway', 'old', 3, now() - interval '20 minutes', now() - interval '10 minutes'),
          ('gone/model', 'gateway', 'of a catalog that is no more', 0, now(), now() + interval '5 minutes')`,
)

describe.runIf(onPostgres)('quarantine over three processes', () => {
  let fleet: Fleet
  let sick: UpstreamServer
  let well: UpstreamServer
  let proxy: TcpProxy
  let members: readonly [GatewayProcess, GatewayProcess, GatewayProcess]
  const folder = mkdtempSync(join(tmpdir(), 'brigade-healing-'))

  beforeAll(async () => {
    ;[sick, well] = await Promise.all([startUpstream(), startUpstream()])
    const file = join(folder, 'brigade.config.json')
    const route = (provider: string, inr: number) => ({ provider, input_inr_per_mtok: inr, output_inr_per_mtok: inr, source: 'test', as_of: '2026-01-01' })
    const server = (id: string, url: string) => ({ id, base_url: url, auth: 'none', residency: 'global' })
    const model = (id: string) => ({ id, kind: 'chat', context_length: 1000, routes: [route('sick', 1), route('well', 2)] })
    writeFileSync(file, JSON.stringify({ providers: [server('sick', sick.url), server('well', well.url)], models: [model('m'), model('n')] }))
    fleet = await startFleet({ CONFIG_FILE: file, CIRCUIT_FAILURES: '1', CIRCUIT_OPEN_MS: String(openMs) })
    await fleet.db.exec(addStale)
    const target = new URL(fleet.database.url ?? '')
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    target.host = `127.0.0.1:${proxy.port}`
    members = await Promise.all([fleet.start(), fleet.start(), fleet.start({ DATABASE_URL: target.href })])
  }, 90_000)
  afterAll(async () => {
    await fleet?.stop()
    await proxy?.close()
    await Promise.all([sick?.close(), well?.close()])
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (member: GatewayProcess, model = 'm') => {
    const body = { model, max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }
    const reply = await call(member, fleet.key, 'POST', '/v1/chat/completions', body)
    return reply.headers.get('x-br-provider') ?? `${reply.status} ${reply.json?.error?.code}`
  }
  const flag = async (member: GatewayProcess, name: 'available' | 'maintenance', model = 'm') =>
    (await call(member, fleet.key, 'GET', `/v1/models/${model}`)).json.routes.find((route: { provider: string }) => route.provider === 'sick')[name]
  const all = async (name: 'available' | 'maintenance', is: boolean, of: readonly GatewayProcess[] = members, model = 'm') =>
    (await Promise.all(of.map(member => flag(member, name, model)))).every(value => value === is)

  test('openings that three processes each see once count together. The route is quarantined everywhere, although no process saw enough alone', async () => {
    // An old row, and a row of a route that is no longer in the catalog, quarantine nothing.
    for (const member of members) expect(await ask(member)).toBe('sick')
    sick.script(() => ({ status: 500 }))
    for (const [index, member] of members.entries()) {
      expect(await ask(member)).toBe('well')
      await until(() => all('available', false), `opening ${index + 1} is known everywhere`, 5_000)
      await until(() => all('available', true), 'the circuit is half-open everywhere', openMs + 5_000)
    }
    expect(sick.requests.filter(request => request.json?.['model'] === 'm').length).toBe(6)
    await until(() => all('maintenance', true), 'every process withholds the route', healedMs)
    sick.reset()
    for (const member of members) expect(await ask(member)).toBe('well')
    expect(sick.requests).toEqual([])
  }, 90_000)

  test('a quarantine survives kill -9 of every process that could have set it, and ends by itself', async () => {
    await members[0].kill()
    await members[1].kill()
    members = [await fleet.start(), await fleet.start(), members[2]]
    expect(await all('maintenance', true)).toBe(true)
    await fleet.db.exec(endSoon, 'sick/m', new Date(Date.now() + 2_000))
    await until(() => all('maintenance', false), 'the maintenance has ended everywhere', healedMs)
    for (const member of members) await until(async () => (await ask(member)) === 'sick', 'the route is dialed again', openMs + 5_000)
  }, 90_000)

  test('without the database, a process still avoids failing routes. It reads the quarantines when the database is back', async () => {
    const [one, two, cutOff] = members
    expect(await ask(cutOff, 'n')).toBe('sick')
    await proxy.cut()
    try {
      sick.script(() => ({ status: 500 }))
      const before = sick.requests.length
      for (let count = 0; count < 5; count++) expect(await ask(cutOff, 'n')).toBe('well')
      expect(sick.requests.length - before).toBe(1)
      expect(await flag(cutOff, 'available', 'n')).toBe(false)
      // Meanwhile the other processes see the route fail and quarantine it.
      for (const member of [one, two, one]) {
        await until(() => all('available', true, [one, two], 'n'), 'the circuit is half-open', openMs + 5_000)
        expect(await ask(member, 'n')).toBe('well')
        await until(() => all('available', false, [one, two], 'n'), 'the opening is known to both', 5_000)
      }
      await until(() => all('maintenance', true, [one, two], 'n'), 'both withhold it', healedMs)
      expect(await flag(cutOff, 'maintenance', 'n')).toBe(false)
    } finally {
      await proxy.restore()
    }
    await until(() => flag(cutOff, 'maintenance', 'n'), 'the process that was cut off knows', healedMs)
    expect(await ask(cutOff, 'n')).toBe('well')
  }, 120_000)
})
