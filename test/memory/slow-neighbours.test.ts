/** A slow or failing store of one organisation must not harm other organisations or the process. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { OpenStores } from '../../src/memory/config/open-stores.ts'
import { MemoryIndex } from '../../src/memory/objects/index/memory-index.ts'
import { MemoryReads } from '../../src/memory/objects/object-reads.ts'
import type { StoreRow } from '../../src/memory/objects/queries.ts'
import { GatewayBuckets } from '../../src/memory/stores/gateway-buckets.ts'
import { AwsIdentity } from '../../src/memory/stores/s3/aws-identity.ts'
import { statement } from '../../src/platform/db/db.ts'
import { makeUrlGuard } from '../../src/platform/outbound/url-guard.ts'
import { makeSealer } from '../../src/platform/security/secrets.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type FaultyStore, startFaultyStore } from '../harness/faulty-store.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'
import { s3Store } from './stores.ts'

const doomedOf = statement<[orgId: number], { count: bigint }>(
  'test.doomed_of',
  'select count(*) as count from memory_versions where org_id = $1::int and doomed_at is not null',
)
const old = '11111111-1111-4111-8111-111111111111'
const addDoomed = statement<[orgId: number, count: number, at: Date]>(
  'test.add_doomed',
  `insert into memory_versions (org_id, key, version_id, object_id, how, size_bytes, written_at, kept_at, doomed_at)
   select $1::int, 'agents/' || n, '${old}', gen_random_uuid(), 'put', 1, $3::timestamptz, $3::timestamptz, $3::timestamptz from generate_series(1, $2::int) as n`,
)
const addAbandoned = statement<[orgId: number, count: number, at: Date]>(
  'test.add_abandoned',
  `insert into memory_intents (org_id, key, kind, write_id, generation, started_at, expires_at)
   select $1::int, 'agents/' || n, 'put', gen_random_uuid(), 1, $3::timestamptz, $3::timestamptz from generate_series(1, $2::int) as n`,
)
/** Moves the store to an address that the operator does not permit. */
const moveInside = statement<[orgId: number]>(
  'test.move_store_inside',
  `update memory_stores set endpoint = 'https://10.0.0.1', generation = generation + 1 where org_id = $1::int`,
)
const abandonedOf = statement<[orgId: number], { count: bigint }>('test.abandoned_of', 'select count(*) as count from memory_intents where org_id = $1::int')

let database: TestDatabase
let server: S3TestServer
let proxy: FaultyStore
let testing: TestMemory
let orgId = 700
beforeAll(async () => {
  database = await testDatabase()
  server = await startS3Server()
  proxy = await startFaultyStore(server)
  testing = await testMemory({ db: database.db, allow: [server.hostPort, proxy.hostPort], timeoutMs: 1_000 })
}, 60_000)
afterAll(async () => {
  await testing?.close()
  await proxy?.close()
  await server?.close()
  await database?.dispose()
})
beforeEach(() => {
  orgId += 10
  proxy.decide = () => ({ kind: 'pass' })
})

const inputOf = (endpoint: string) => ({ endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey })

test('old versions in a store that does not answer are postponed, and delay neither the sweep nor the versions of other organisations', async () => {
  const other = orgId + 1
  await testing.memory.config.put(orgId, inputOf(proxy.endpoint))
  await testing.memory.config.put(other, inputOf(server.endpoint))
  await database.db.exec(addDoomed, orgId, 300, new Date(testing.clock.nowMs() - 60_000))
  await database.db.exec(addDoomed, other, 3, new Date(testing.clock.nowMs()))
  proxy.decide = () => ({ kind: 'silence' })
  proxy.calls.length = 0
  await testing.memory.sweep(testing.clock.nowMs())
  // Each worker tries once, and the client sends each try twice.
  expect(proxy.calls.length).toBeLessThanOrEqual(16)
  expect((await database.db.one(doomedOf, other)).count).toBe(0n)
  expect((await database.db.one(doomedOf, orgId)).count).toBe(300n)
  proxy.decide = () => ({ kind: 'pass' })
  testing.clock.advance(120_000)
  for (let sweeps = 0; sweeps < 2; sweeps++) await testing.memory.sweep(testing.clock.nowMs())
  expect((await database.db.one(doomedOf, orgId)).count).toBe(0n)
}, 60_000)

test('old versions in a store whose address is no longer permitted are postponed, and delay neither the sweep nor other organisations', async () => {
  const other = orgId + 1
  await testing.memory.config.put(orgId, inputOf(proxy.endpoint))
  await testing.memory.config.put(other, inputOf(server.endpoint))
  await database.db.exec(moveInside, orgId)
  await database.db.exec(addDoomed, orgId, 300, new Date(testing.clock.nowMs() - 60_000))
  await database.db.exec(addDoomed, other, 3, new Date(testing.clock.nowMs()))
  await testing.memory.sweep(testing.clock.nowMs())
  expect((await database.db.one(doomedOf, other)).count).toBe(0n)
  expect((await database.db.one(doomedOf, orgId)).count).toBe(300n)
})

test('abandoned writes and old versions of many stores that do not answer do not delay those of other organisations', async () => {
  const silent = Array.from({ length: 20 }, (_, n) => 5_000 + n)
  const other = 5_100
  for (const each of silent) await testing.memory.config.put(each, inputOf(proxy.endpoint))
  await testing.memory.config.put(other, inputOf(server.endpoint))
  const ago = (seconds: number): Date => new Date(testing.clock.nowMs() - seconds * 1000)
  // Adds as many rows as one sweep takes. All are older than the rows of the other organisation.
  for (const each of silent) {
    await database.db.exec(addAbandoned, each, 50, ago(3_600))
    await database.db.exec(addDoomed, each, 400, ago(3_600))
  }
  await database.db.exec(addAbandoned, other, 3, ago(60))
  await database.db.exec(addDoomed, other, 3, ago(60))
  const left = async (): Promise<bigint> => (await database.db.one(abandonedOf, other)).count + (await database.db.one(doomedOf, other)).count
  proxy.decide = () => ({ kind: 'status', status: 403, code: 'AccessDenied' })
  for (let sweeps = 0; sweeps < 5; sweeps++) await testing.memory.sweep(testing.clock.nowMs())
  expect(await left()).toBe(0n)
  // The postponed rows are removed later.
  proxy.decide = () => ({ kind: 'pass' })
  testing.clock.advance(2 * 3_600_000)
  await testing.memory.sweep(testing.clock.nowMs())
  for (const each of silent) expect((await database.db.one(abandonedOf, each)).count).toBe(0n)
}, 120_000)

test('other organisations can search while searches wait for stores that do not answer', async () => {
  const silent = [orgId, orgId + 1]
  const other = orgId + 2
  for (const each of silent) await testing.memory.config.put(each, inputOf(proxy.endpoint))
  await testing.memory.config.put(other, inputOf(server.endpoint))
  const look = (each: number) =>
    testing.memory.search.search(callFrom(keyOf(each)), { text: 'x', isRegex: false, isCaseSensitive: false, prefix: 'agents/', limit: 10 })
  proxy.decide = () => ({ kind: 'silence' })
  proxy.calls.length = 0
  const waiting = silent.flatMap(each => Array.from({ length: 4 }, () => errorCode(() => look(each))))
  await until(() => proxy.calls.length >= 8, 'all of them wait for the store')
  expect(await errorCode(() => look(other))).toBe('ok')
  expect(await errorCode(() => look(silent[0] ?? 0))).toBe('rate_limit_exceeded')
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'memory_store_failed'))
})

test('a forged cursor is refused before the store is called', async () => {
  await testing.memory.config.put(orgId, inputOf(server.endpoint))
  const page = (position: string) =>
    errorCode(() =>
      testing.memory.objects.listPage(callFrom(keyOf(orgId)), 'agents/', { limit: 1, cursor: Buffer.from(`l:${position}`).toString('base64url') }),
    )
  expect(await page('agents/a\0b')).toBe('bad_request')
  expect(await page('agents/a'.repeat(200))).toBe('bad_request')
  expect(await page('agents/a/\u{10ffff}')).toBe('ok')
})

test('running calls continue on a store that the cache has dropped', async () => {
  const sealer = makeSealer(Buffer.alloc(32, 7))
  const stores = new OpenStores({
    clock: testing.clock,
    ids: systemIds,
    sealer,
    guard: makeUrlGuard([server.hostPort]),
    identity: new AwsIdentity({ clock: testing.clock, stsRegion: 'us-east-1' }),
    gatewayBuckets: new GatewayBuckets([], null),
    externalId: async () => 'none',
    dataDir: '/nowhere',
    timeoutMs: 20_000,
    objectBytesMax: 1024 * 1024,
  })
  await testing.memory.config.put(orgId, inputOf(server.endpoint))
  const row = await testing.memory.config.find(orgId)
  if (row === null) throw new Error('not configured')
  const store = stores.of(row)
  let letGo = (): void => {}
  const reached = new Promise<void>(resolve => {
    server.faults.beforeWrite = () =>
      new Promise<void>(open => {
        letGo = open
        resolve()
      })
  })
  const write = errorCode(() => store.put(`org-${orgId}/agents/a`, Buffer.from('1')))
  await reached
  stores.of({ ...row, generation: row.generation + 1 })
  server.faults.beforeWrite = async () => {}
  letGo()
  expect(await write).toBe('ok')
  expect((await store.list({ prefix: `org-${orgId}/` })).objects).toHaveLength(1)
  stores.close()
})

describe('a bucket with more objects than one list may return', () => {
  let pageOf: (startAfter: string, count: number) => string
  let huge: ReturnType<typeof createServer>
  let reads: MemoryReads
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const query = new URL(request.url ?? '/', 'http://s3').searchParams
    const startAfter = query.get('start-after') ?? ''
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(`<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>${pageOf(startAfter, Number(query.get('max-keys')))}</ListBucketResult>`)
  }
  const entry = (key: string): string => `<Contents><Key>${key}</Key><ETag>e</ETag><Size>1</Size></Contents>`
  const numberIn = (startAfter: string): number => Number(/(\d{9})$/.exec(startAfter)?.[1] ?? 0)
  const numbered = (number: number): string => String(number).padStart(9, '0')

  beforeAll(async () => {
    huge = createServer(answer)
    await new Promise<void>(resolve => huge.listen(0, '127.0.0.1', resolve))
    const store = s3Store({ endpoint: `http://127.0.0.1:${(huge.address() as AddressInfo).port}`, bucket: 'memory', accessKey: 'A', secretKey: 'B' })
    await testing.memory.config.put(1, inputOf(server.endpoint))
    const row: StoreRow | null = await testing.memory.config.find(1)
    if (row === null) throw new Error('not configured')
    const configured = async () => ({ row, store })
    const { clock, memory } = testing
    const index = new MemoryIndex({ db: database.db, clock, ids: systemIds, intentMs: 60_000, storeOf: configured, announce: () => {} })
    const more = { objectBytesMax: 1, intentMs: 60_000, configured, forget: () => {}, agentByLabel: () => null, founderOf: String }
    reads = new MemoryReads({ db: database.db, clock, ids: systemIds, index, callers: memory.callers, ...more })
  })
  afterAll(() => {
    huge?.close()
    huge?.closeAllConnections()
  })

  test('a list without pages ends before it fills the memory, with an error that says what to do', async () => {
    const folder = `org-1/agents/${'x'.repeat(900)}-`
    pageOf = (startAfter, count) => Array.from({ length: count }, (_, n) => entry(folder + numbered(numberIn(startAfter) + n + 1))).join('')
    const call = callFrom(keyOf(1))
    expect(await errorCode(() => reads.list(call, 'agents/'))).toBe('bad_request')
    expect((await reads.listPage(call, 'agents/', { limit: 3 })).keys).toHaveLength(3)
  }, 60_000)

  test('a page also ends when the store lists very many objects and the gateway serves none of them', async () => {
    pageOf = startAfter => entry(`org-1/agents//${numbered(numberIn(startAfter) + 1)}`)
    expect(await errorCode(() => reads.listPage(callFrom(keyOf(1)), 'agents/', { limit: 3 }))).toBe('memory_store_failed')
  }, 60_000)
})
