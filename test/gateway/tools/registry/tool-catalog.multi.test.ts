import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MemoryCatalog } from '../../../../src/gateway/tools/registry/memory-catalog.ts'
import { systemClock } from '../../../../src/platform/clock.ts'
import { ControlLog } from '../../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../../src/platform/observe/log.ts'
import { makeSealer } from '../../../../src/platform/security/secrets.ts'
import { onPostgres } from '../../../harness/database.ts'
import { type Fleet, startFleet } from '../../../harness/fleet.ts'
import type { GatewayProcess } from '../../../harness/process.ts'
import { until } from '../../../harness/until.ts'
import { type ListedServer, startListedServer, toolOf } from './listed-server.ts'

/** Longest time from a change in one process to its effect in another. */
const effectDeadlineMs = 2000

describe.runIf(onPostgres)('tools in several processes', () => {
  let fleet: Fleet
  let server: ListedServer
  let here: GatewayProcess
  let there: GatewayProcess
  let cookie: string
  let controlLog: ControlLog
  let catalog: MemoryCatalog

  beforeAll(async () => {
    server = await startListedServer('modern')
    fleet = await startFleet({ OUTBOUND_ALLOW: server.hostPort })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
    // The catalog of a third process, which this test can look into.
    const parts = { db: fleet.db, clock: systemClock, log: silentLog }
    controlLog = new ControlLog({ ...parts, pollMs: 200 })
    catalog = new MemoryCatalog({ ...parts, controlLog, sealer: makeSealer(Buffer.alloc(32)), enabled: true, timeoutMs: 1000 })
    await controlLog.start()
  })
  afterAll(async () => {
    await controlLog?.stop()
    await fleet?.stop()
    await server?.close()
  })

  const as = async (process: GatewayProcess, method: string, path: string, body?: object) => {
    const headers = { cookie, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const response = await fetch(`${process.baseUrl}/me/tool-servers${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    expect(response.ok, `${method} ${path} ${response.status}`).toBe(true)
    // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
    return (await response.json()) as any
  }
  const callable = async () => (await catalog.of(fleet.orgId)).all().map(({ publicName }) => publicName)
  const becomes = (names: readonly string[], what: string) =>
    until(async () => JSON.stringify(await callable()) === JSON.stringify(names), what, effectDeadlineMs)

  test('an approval, a change, a block and a switch in one process reach the catalog of another within two seconds', async () => {
    expect(await callable()).toEqual([])
    const { id } = (await as(here, 'POST', '', { name: 'Ours', url: server.url })).server
    const approve = async () => {
      const { tools } = await as(there, 'GET', `/${id}/tools`)
      await as(there, 'POST', `/${id}/tools/approve`, { tools: tools.map(({ name, hash }: { name: string; hash: string }) => ({ name, hash })) })
    }
    await approve()
    await becomes(['ours__add', 'ours__echo'], 'approved')
    server.tools = [toolOf('echo', { description: 'Changed.' }), toolOf('add')]
    await as(here, 'POST', `/${id}/sync`)
    await becomes(['ours__add'], 'changed')
    await approve()
    await becomes(['ours__add', 'ours__echo'], 'approved again')
    await as(there, 'POST', `/${id}/tools/block`, { tools: ['ours__add'] })
    await becomes(['ours__echo'], 'blocked')
    await as(here, 'POST', `/${id}/off`)
    await becomes([], 'off')
    await as(there, 'POST', `/${id}/on`)
    await becomes(['ours__echo'], 'on')
    await as(here, 'DELETE', `/${id}`)
    await becomes([], 'removed')
  })
})
