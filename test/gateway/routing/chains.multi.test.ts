import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

/** The promised time. Events of the control log make it a second at most. */
const effectDeadlineMs = 60_000

describe.runIf(onPostgres)('saved chains over several processes', () => {
  let fleet: Fleet
  let upstream: UpstreamServer
  let members: readonly GatewayProcess[]
  let cookie: string
  const folder = mkdtempSync(join(tmpdir(), 'brigade-chains-'))

  beforeAll(async () => {
    upstream = await startUpstream()
    const file = join(folder, 'brigade.config.json')
    const route = (provider: string) => ({ provider, input_inr_per_mtok: 0, output_inr_per_mtok: 100, source: 'test', as_of: '2026-01-01' })
    const server = (id: string) => ({ id, base_url: upstream.url, auth: 'none', residency: 'global' })
    const model = (id: string, provider: string) => ({ id, kind: 'chat', context_length: 1000, routes: [route(provider)] })
    writeFileSync(file, JSON.stringify({ providers: [server('first'), server('second')], models: [model('one', 'first'), model('two', 'second')] }))
    fleet = await startFleet({ CONFIG_FILE: file })
    members = await Promise.all([fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
  })
  afterAll(async () => {
    await fleet?.stop()
    await upstream?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const manage = async (member: GatewayProcess, method: string, body?: object): Promise<number> => {
    const headers = { cookie, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const response = await fetch(`${member.baseUrl}/me/routing/one`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    await response.arrayBuffer()
    return response.status
  }
  const servedBy = async (member: GatewayProcess): Promise<string | null> => {
    const body = { model: 'one', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }
    return (await call(member, fleet.key, 'POST', '/v1/chat/completions', body)).headers.get('x-br-provider')
  }

  test('LIM-07 CHAIN-09 a chain that is saved, changed or deleted on one process applies on the others within a minute', async () => {
    const [here, there] = members as [GatewayProcess, GatewayProcess]
    // Both processes have cached the organisation without a chain.
    for (const member of members) expect(await servedBy(member)).toBe('first')
    const changes: readonly (readonly [GatewayProcess, readonly string[] | null, string])[] = [
      [here, ['two'], 'second'],
      [there, ['one', 'two'], 'first'],
      [here, ['two', 'one'], 'second'],
      [there, null, 'first'],
    ]
    for (const [member, steps, provider] of changes) {
      const status = steps === null ? await manage(member, 'DELETE') : await manage(member, 'PUT', { steps })
      expect(status).toBe(200)
      // On the process that made the change, it applies immediately.
      expect(await servedBy(member)).toBe(provider)
      for (const other of members) await until(async () => (await servedBy(other)) === provider, `the call goes to ${provider}`, effectDeadlineMs)
    }
  })
})
