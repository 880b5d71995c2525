import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AuditTrail } from '../../../src/gateway/audit/audit.ts'
import { Cors } from '../../../src/gateway/http/cors.ts'
import type { EdgeDeps } from '../../../src/gateway/http/edge.ts'
import { OpenStreams } from '../../../src/gateway/http/replies/open-streams.ts'
import { RateHeaders } from '../../../src/gateway/http/replies/rate-headers.ts'
import { bindingsOf } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { RowInvoker } from '../../../src/gateway/http/rows/row-invoker.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { type AnyRow, endpointOf } from '../../../src/platform/endpoint.ts'
import { fail } from '../../../src/platform/errors.ts'
import { Inflight } from '../../../src/platform/loop/inflight.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { roomyBounds } from '../../harness/bounds.ts'
import { movableClock } from '../../harness/clock.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { fullKey, inferenceKey } from '../../mcp/mount.ts'

const row = endpointOf<object>()
const common = { auth: 'key', access: { scope: 'full' }, tag: 'test', summary: '', output: z.unknown(), errors: [] } as const
const table = {
  makeThing: row({ ...common, at: 'POST /v1/things', input: {}, handle: () => ({ id: 31, name: 'private name' }) }),
  endThing: row({ ...common, at: 'POST /v1/things/{id}/end', input: { path: z.object({ id: z.string() }) }, handle: () => Promise.reject(fail('not_found')) }),
  breakThing: row({ ...common, at: 'DELETE /v1/things/{id}', input: {}, handle: () => Promise.reject(new Error('a bug')) }),
  readThing: row({ ...common, at: 'GET /v1/things', input: {}, handle: () => ({ id: 31 }) }),
  sayThing: row({ ...common, at: 'POST /v1/say', input: {}, inference: true, handle: () => ({ id: 31 }) }),
  tryThing: row({ ...common, at: 'POST /v1/try', input: {}, audit: false, handle: () => ({ id: 31 }) }),
}

describe('rows that an MCP tool calls', () => {
  let database: TestDatabase
  let trail: AuditTrail
  let invoker: RowInvoker
  beforeAll(async () => {
    database = await testDatabase()
    trail = new AuditTrail({ db: database.db, clock: movableClock(), keepDays: 1 })
    const edge: EdgeDeps = {
      services: {},
      ids: systemIds,
      log: silentLog,
      inflight: new Inflight(),
      baseUrl: () => 'http://gateway.test',
      ...roomyBounds(),
      bodyLimitBytes: 1024,
      inferenceBodyLimitBytes: 1024,
      formLimits: { fileBytes: 1e6, totalBytes: 1e6 },
      authenticate: () => fullKey,
      authenticateSession: () => Promise.reject(fail('no_session')),
      clientIp: () => '127.0.0.1',
      recheck: () => undefined,
      takeRate: () => undefined,
      noteRefused: () => {},
      rates: new RateHeaders({ requestsLeft: () => null, withFields: true }),
      countAnonymous: () => undefined,
      countPerson: () => undefined,
      acts: trail,
      streams: new OpenStreams(systemClock, 1000),
      cors: new Cors([], []),
      isDraining: () => false,
      isRetiring: () => false,
    }
    invoker = new RowInvoker(edge, bindingsOf(table))
  })
  afterAll(() => database.dispose())

  const call = { principal: fullKey, requestId: 'req_1', agentLabel: null, signal: new AbortController().signal, clientIp: () => '198.51.100.1' }

  test('an act of management through MCP writes one audit line, as over HTTP, and reads, inference and data write none', async () => {
    await invoker.call(table.makeThing, {}, call)
    await expect(invoker.call(table.endThing, { path: { id: '31' } }, call)).rejects.toMatchObject({ code: 'not_found' })
    await expect(invoker.call(table.breakThing, { path: { id: 'br-SeCrEtSeCrEtSeCrEtSeCrEt' } }, call)).rejects.toThrow('a bug')
    await expect(invoker.call(table.makeThing, {}, { ...call, principal: inferenceKey })).rejects.toMatchObject({ code: 'forbidden' })
    for (const each of [table.readThing, table.sayThing, table.tryThing] as AnyRow[]) await invoker.call(each, {}, call)
    const { entries } = await trail.list(1, {}, 50)
    expect(entries.map(({ act, target, outcome, actor }) => [act, target, outcome, actor.kind, actor.id])).toEqual([
      ['makeThing', null, 'forbidden', 'key', inferenceKey.keyId],
      ['breakThing', 'id=?', 'internal_error', 'key', fullKey.keyId],
      ['endThing', 'id=31', 'not_found', 'key', fullKey.keyId],
      ['makeThing', 'id=31', 'ok', 'key', fullKey.keyId],
    ])
    expect(entries[0]).toMatchObject({ source_ip: '198.51.100.1', request_id: 'req_1' })
    expect(JSON.stringify(entries)).not.toMatch(/private name|SeCrEt/)
  })
})
