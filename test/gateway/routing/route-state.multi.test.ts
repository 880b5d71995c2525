import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const openMs = 4_000

describe.runIf(onPostgres)('circuits and maintenance over several processes', () => {
  let fleet: Fleet
  let sick: UpstreamServer
  let well: UpstreamServer
  let members: readonly GatewayProcess[]
  const folder = mkdtempSync(join(tmpdir(), 'brigade-routes-'))

  beforeAll(async () => {
    ;[sick, well] = await Promise.all([startUpstream(), startUpstream()])
    const file = join(folder, 'brigade.config.json')
    const route = (provider: string, inr: number) => ({ provider, input_inr_per_mtok: inr, output_inr_per_mtok: inr, source: 'test', as_of: '2026-01-01' })
    const server = (id: string, url: string) => ({ id, base_url: url, auth: 'none', residency: 'global' })
    writeFileSync(
      file,
      JSON.stringify({
        providers: [server('sick', sick.url), server('well', well.url)],
        // Each test uses its own model, because a route's history affects later calls.
        models: ['m', 'n', 'o'].map(id => ({ id, kind: 'chat', context_length: 1000, routes: [route('sick', 1), route('well', 2)] })),
      }),
    )
    fleet = await startFleet({ CONFIG_FILE: file, CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: String(openMs) })
    members = await Promise.all([fleet.start(), fleet.start()])
  })
  afterAll(async () => {
    await fleet?.stop()
    await Promise.all([sick?.close(), well?.close()])
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (member: GatewayProcess, model = 'm') => {
    const body = { model, max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }
    return (await call(member, fleet.key, 'POST', '/v1/chat/completions', body)).headers.get('x-br-provider')
  }
  const flag = async (member: GatewayProcess, name: 'available' | 'maintenance', model = 'm') =>
    (await call(member, fleet.key, 'GET', `/v1/models/${model}`)).json.routes.find((route: { provider: string }) => route.provider === 'sick')[name]

  test('LIFE-02 a circuit that opens on one process is open on the other without a failed call there, and a successful probe closes it on both', async () => {
    const [here, there] = members as [GatewayProcess, GatewayProcess]
    expect(await ask(there)).toBe('sick')
    sick.script(() => ({ status: 500 }))
    for (let count = 0; count < 3; count++) expect(await ask(here)).toBe('well')
    await until(async () => (await flag(there, 'available')) === false, 'the other process knows of the open circuit', 3_000)
    const before = sick.requests.length
    expect(await ask(there)).toBe('well')
    expect(sick.requests).toHaveLength(before)
    await until(async () => (await flag(there, 'available')) === true, 'the circuit is half-open', openMs + 3_000)
    // A failed probe opens the circuit on both processes again.
    expect(await ask(there)).toBe('well')
    expect(sick.requests).toHaveLength(before + 1)
    await until(async () => (await flag(here, 'available')) === false, 'the first process knows that the probe failed', 3_000)
    sick.reset()
    await until(async () => (await flag(here, 'available')) === true, 'the circuit is half-open again', openMs + 3_000)
    expect(await ask(here)).toBe('sick')
    await until(async () => (await ask(there)) === 'sick', 'the other process dials it first again', 3_000)
  })

  test('of many calls on a half-open circuit, one is the probe and the others are served elsewhere', async () => {
    const [here] = members as [GatewayProcess]
    sick.script(() => ({ status: 500 }))
    for (let count = 0; count < 3; count++) await ask(here, 'n')
    await until(async () => (await flag(here, 'available', 'n')) === true, 'the circuit is half-open', openMs + 3_000)
    sick.reset()
    sick.hold()
    const probes = sick.requests.length
    const others = well.requests.length
    const calls = Array.from({ length: 10 }, () => ask(here, 'n'))
    await until(() => well.requests.length - others === 9, 'the others are served', 3_000).finally(() => sick.release())
    expect((await Promise.all(calls)).filter(provider => provider === 'sick')).toHaveLength(1)
    expect(sick.requests.length - probes).toBe(1)
    expect(await ask(here, 'n')).toBe('sick')
  })

  test('a quarantine by one process applies on the other process, and on one that starts later', async () => {
    const [here, there] = members as [GatewayProcess, GatewayProcess]
    sick.script(() => ({ status: 402, body: { error: { message: 'pay first' } } }))
    for (let count = 0; count < 4; count++) expect(await ask(here, 'o')).toBe('well')
    sick.reset()
    await until(async () => (await flag(here, 'maintenance', 'o')) === true, 'the gateway withholds the route', 15_000)
    await until(async () => (await flag(there, 'maintenance', 'o')) === true, 'the other process knows', 3_000)
    const late = await fleet.start()
    expect(await flag(late, 'maintenance', 'o')).toBe(true)
    for (const member of [here, there, late]) expect(await ask(member, 'o')).toBe('well')
    expect(sick.requests).toEqual([])
  }, 60_000)
})
