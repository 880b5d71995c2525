import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import { statement } from '../../src/platform/db/db.ts'
import { toGatewayError } from '../../src/platform/errors.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type Fault, type FaultyStore, startFaultyStore } from '../harness/faulty-store.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'

let database: TestDatabase
let server: S3TestServer
let proxy: FaultyStore
let testing: TestMemory
/** The same gateway with shorter time limits, for stores that do not answer. */
let impatient: TestMemory
let current: TestMemory
let call: MemoryCall
let orgId = 900

const ageIntents = statement<[orgId: number]>('test.age_intents', `update memory_intents set expires_at = '2000-01-01' where org_id = $1::int`)

beforeAll(async () => {
  database = await testDatabase()
  server = await startS3Server()
  proxy = await startFaultyStore(server)
  testing = await testMemory({ db: database.db, allow: [proxy.hostPort], timeoutMs: 10_000 })
  impatient = await testMemory({ db: database.db, allow: [proxy.hostPort], timeoutMs: 500 })
}, 60_000)
beforeEach(async () => {
  orgId++
  current = testing
  call = callFrom(keyOf(orgId))
  proxy.decide = () => ({ kind: 'pass' })
  const { bucket, accessKey, secretKey } = server
  await testing.memory.config.put(orgId, { endpoint: proxy.endpoint, bucket, access_key: accessKey, secret_key: secretKey, history_versions: 0 })
})
afterAll(async () => {
  await testing?.close()
  await impatient?.close()
  await proxy?.close()
  await server?.close()
  await database?.dispose()
})

const objects = () => current.memory.objects
const write = (key: string, text: string, conditions = {}) => objects().write(call, key, Buffer.from(text), conditions)
const always = (fault: Fault, methods = /./): void => {
  proxy.decide = ({ method }) => (methods.test(method) ? fault : { kind: 'pass' })
}
const once = (fault: Fault, methods: RegExp): void => {
  let isDone = false
  proxy.decide = ({ method }) => {
    if (isDone || !methods.test(method)) return { kind: 'pass' }
    isDone = true
    return fault
  }
}
const refusal = async (work: () => Promise<unknown>) => {
  const error = toGatewayError(await work().catch((thrown: unknown) => thrown))
  return { name: error.errorName, status: error.status, message: error.message, headers: error.toHeaders() }
}
/** Resolves all intents, and expects that the index and the bucket have the same content. */
const expectAgreement = async (): Promise<void> => {
  await database.db.exec(ageIntents, orgId)
  await testing.memory.sweep(testing.clock.nowMs())
  const inBucket = [...server.objects].filter(([key]) => key.startsWith(`org-${orgId}/`) && !key.includes('/.'))
  const bytes = inBucket.reduce((sum, [, { bytes }]) => sum + BigInt(bytes.length), 0n)
  expect(await testing.usage(orgId)).toMatchObject({ usedBytes: bytes, reservedBytes: 0n, objects: BigInt(inBucket.length) })
  const result = await testing.memory.reconcile.run(orgId, new AbortController().signal)
  expect(result).toMatchObject({ added: 0, changed: 0, removed: 0, bytes_used: Number(bytes) })
}

const status = (status: number, code?: string): Fault => ({ kind: 'status', status, ...(code === undefined ? {} : { code }) })

describe('how a failing store appears to callers', () => {
  const rows: readonly [name: string, fault: Fault, expected: { status: number; message: RegExp; retry?: string }][] = [
    ['500', status(500), { status: 502, message: /Whether the write happened is not known/ }],
    ['SlowDown', status(503, 'SlowDown'), { status: 503, message: /overloaded/, retry: '2' }],
    ['429', status(429, 'TooManyRequests'), { status: 503, message: /overloaded/, retry: '2' }],
    ['507', status(507), { status: 502, message: /is full/ }],
    ['the store reports that its own quota is used up', status(403, 'QuotaExceeded'), { status: 502, message: /is full/ }],
    ['revoked credentials', status(403, 'InvalidAccessKeyId'), { status: 502, message: /cannot be used as it is configured.*PUT \/v1\/me\/memory-store/ }],
    ['a deleted bucket', status(404, 'NoSuchBucket'), { status: 502, message: /cannot be used as it is configured/ }],
    ['silence', { kind: 'silence' }, { status: 502, message: /Whether the write happened is not known/ }],
  ]
  test.each(rows)('%s', async (_name, fault, expected) => {
    await write('agents/kept', 'before')
    if (fault.kind === 'silence') current = impatient
    always(fault)
    const refused = await refusal(() => write('agents/kept', 'much longer than before'))
    expect([refused.status, refused.headers['retry-after']]).toEqual([expected.status, expected.retry])
    expect(refused.message).toMatch(expected.message)
    const read = await refusal(() => objects().read(call, 'agents/kept'))
    expect(read.status).toBe(expected.status)
    expect(read.message).not.toMatch(/write happened/)
    expect((await testing.usage(orgId)).usedBytes).toBe(6n)
    always({ kind: 'pass' })
    await expectAgreement()
  })
})

describe('one failing call', () => {
  const faults: readonly [string, Fault][] = [
    ['the reply is lost', { kind: 'lost-reply' }],
    ['the store answers 500 although it has done the write', { kind: 'lie-status', status: 500 }],
    ['the store answers 503 although it has done the write', { kind: 'lie-status', status: 503, code: 'SlowDown' }],
    ['the reply never comes', { kind: 'silence' }],
    ['the store answers 500 and has not done the write', status(500)],
  ]
  test.each(faults)('%s: the write counts once, with and without a condition', async (_name, fault) => {
    if (fault.kind === 'silence') current = impatient
    once(fault, /PUT/)
    const { etag } = await write('agents/a', '12345', { ifNoneMatch: '*' })
    once(fault, /PUT/)
    const second = await write('agents/a', '123', { ifMatch: etag })
    once(fault, /PUT/)
    await write('agents/a', '1234567')
    expect(await errorCode(() => write('agents/a', 'x', { ifMatch: second.etag }))).toBe('memory_conflict')
    once(fault, /PUT/)
    await write('agents/b', '12')
    once(fault, /DELETE/)
    await objects().remove(call, 'agents/b')
    once(fault, /DELETE/)
    await objects()
      .remove(call, 'agents/a', { ifMatch: (await objects().read(call, 'agents/a')).etag })
      .catch(() => {})
    await expectAgreement()
  })

  test('a reply that breaks off in the middle of the body is an error, never a partial object', async () => {
    await write('agents/a', 'x'.repeat(100_000))
    for (const kind of ['cut-body', 'stall-body'] as const) {
      current = kind === 'stall-body' ? impatient : testing
      always({ kind }, /GET/)
      expect((await refusal(() => objects().read(call, 'agents/a'))).status).toBe(502)
      once({ kind }, /LIST/)
    }
    always({ kind: 'pass' })
    expect((await objects().read(call, 'agents/a')).bytes).toHaveLength(100_000)
  })

  test('when the store does not show an object for a moment while it replaces it, the gateway reads the object again', async () => {
    await write('agents/a', 'here')
    once(status(404, 'NoSuchKey'), /GET/)
    expect((await objects().read(call, 'agents/a')).bytes.toString()).toBe('here')
    proxy.calls.length = 0
    expect((await refusal(() => objects().read(call, 'agents/never'))).name).toBe('not_found')
    expect(proxy.calls).toHaveLength(1)
    server.objects.delete(`org-${orgId}/agents/a`)
    expect((await refusal(() => objects().read(call, 'agents/a'))).name).toBe('not_found')
  })

  test('the next writer of a key resolves a write whose result is unknown, without a delay', async () => {
    await write('agents/a', '1')
    current = impatient
    always({ kind: 'silence' })
    expect(await errorCode(() => write('agents/a', '22'))).toBe('memory_store_failed')
    always({ kind: 'pass' })
    current = testing
    await write('agents/a', '333')
    await expectAgreement()
    expect((await testing.usage(orgId)).usedBytes).toBe(3n)
  })

  test('a request of the gateway that arrives late at the store does not replace a newer write', async () => {
    await write('agents/a', 'old')
    let letGo = (): void => {}
    const reached = new Promise<void>(resolve => {
      const held = new Promise<void>(open => {
        letGo = open
      })
      let isFirst = true
      server.faults.beforeWrite = key => {
        if (!isFirst || !key.endsWith('agents/a')) return Promise.resolve()
        isFirst = false
        resolve()
        return held
      }
    })
    current = impatient
    const late = errorCode(() => write('agents/a', 'late'))
    await reached
    expect(await late).toBe('memory_store_failed')
    current = testing
    server.faults.beforeWrite = () => Promise.resolve()
    // The server handles the requests for one key in order, so the newer write waits for the late one. If the late request is performed first, the newer
    // write replaces it.
    letGo()
    await write('agents/a', 'newer')
    expect((await objects().read(call, 'agents/a')).bytes.toString()).toBe('newer')
    await expectAgreement()
  })
})

test('in a store without conditions, a write whose request may still arrive keeps its key until its intent expires', async () => {
  server.faults.ignoreConditions = true
  await testing.memory.config.put(orgId, { reprobe: true })
  await write('agents/a', 'old')
  let letGo = (): void => {}
  const reached = new Promise<void>(resolve => {
    server.faults.beforeWrite = () =>
      new Promise<void>(open => {
        letGo = open
        resolve()
        server.faults.beforeWrite = () => Promise.resolve()
      })
  })
  current = impatient
  const late = errorCode(() => write('agents/a', 'late'))
  await reached
  expect(await late).toBe('memory_store_failed')
  current = testing
  expect(await errorCode(() => write('agents/a', 'newer'))).toBe('memory_busy')
  letGo()
  await until(async () => (await objects().read(call, 'agents/a')).bytes.toString() === 'late', 'it has arrived')
  await expectAgreement()
  await write('agents/a', 'newer')
  expect((await objects().read(call, 'agents/a')).bytes.toString()).toBe('newer')
  server.faults.ignoreConditions = false
  await expectAgreement()
}, 30_000)

describe('a store that gives wrong etags', () => {
  const etags: readonly [string, (etag: string) => string | null, RegExp][] = [
    ['PUT answers another etag than HEAD', etag => etag.replace(/"$/, '-put"'), /PUT/],
    ['the store sends weak etags', etag => `W/${etag}`, /./],
    ['the store sends etags without quotes', etag => etag.replaceAll('"', ''), /./],
    ['PUT answers no etag', () => null, /PUT/],
    ['the store sends no etags', () => null, /PUT|HEAD|GET/],
  ]
  test.each(etags)('%s: compare and swap accepts the etag from the reply of a write and the etag from a read', async (_name, change, methods) => {
    always({ kind: 'etag', change }, methods)
    await testing.memory.config.put(orgId, { reprobe: true })
    const first = await write('agents/a', '1')
    const second = await write('agents/a', '22', { ifMatch: first.etag })
    const read = await objects().read(call, 'agents/a')
    expect(await errorCode(() => write('agents/a', 'x', { ifMatch: first.etag }))).toBe('memory_conflict')
    const third = await write('agents/a', '333', { ifMatch: read.etag })
    expect(await errorCode(() => write('agents/a', 'x', { ifMatch: second.etag }))).toBe('memory_conflict')
    expect(await errorCode(() => write('agents/a', 'x', { ifNoneMatch: '*' }))).toBe('memory_conflict')
    await write('agents/a', '4444')
    expect(await errorCode(() => objects().remove(call, 'agents/a', { ifMatch: third.etag }))).toBe('memory_conflict')
    await objects().remove(call, 'agents/a', { ifMatch: '*' })
    await write('agents/b', '1')
    const usage = await testing.usage(orgId)
    expect(usage).toMatchObject({ usedBytes: 1n, reservedBytes: 0n })
  })

  test('when a store stops honouring conditions, no write of the gateway is lost, and the next probe detects the change', async () => {
    const first = await write('agents/a', '1')
    server.faults.ignoreConditions = true
    const second = await write('agents/a', '2', { ifMatch: first.etag })
    for (const conditions of [{ ifMatch: first.etag }, { ifNoneMatch: '*' }])
      expect(await errorCode(() => write('agents/a', 'x', conditions))).toBe('memory_conflict')
    expect(await errorCode(() => objects().remove(call, 'agents/a', { ifMatch: first.etag }))).toBe('memory_conflict')
    const problems = await testing.memory.checkStores()
    expect(problems.find(found => found.orgId === orgId)?.problem).toMatch(/conditional writes/)
    expect(await testing.memory.config.view(orgId)).toMatchObject({ capabilities: { conditional_put: false, conditional_delete: false } })
    // From here on the gateway itself compares the etags, so it also notices a change that was made directly in the bucket.
    server.put(`org-${orgId}/agents/a`, 'foreign')
    expect(await errorCode(() => write('agents/a', 'x', { ifMatch: second.etag }))).toBe('memory_conflict')
    server.faults.ignoreConditions = false
    await testing.memory.config.put(orgId, { reprobe: true })
    expect(await testing.memory.config.view(orgId)).toMatchObject({
      capabilities: { conditional_put: true, versioning: 'unknown', copy: true, lists_at_once: true },
    })
  })

  test('a store that no longer supports conditions still accepts writes', async () => {
    const first = await write('agents/a', '1')
    server.faults.noConditions = true
    const second = await write('agents/a', '22', { ifMatch: first.etag })
    expect(await errorCode(() => write('agents/a', 'x', { ifMatch: first.etag }))).toBe('memory_conflict')
    await objects().remove(call, 'agents/a', { ifMatch: second.etag })
    server.faults.noConditions = false
    await expectAgreement()
  })
})

test('If-Match also accepts the hash of the content, as "sha256:<hex>"', async () => {
  await write('agents/a', 'hello')
  const hash = 'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
  await write('agents/a', 'world', { ifMatch: `"${hash}"` })
  expect(await errorCode(() => write('agents/a', 'x', { ifMatch: hash }))).toBe('memory_conflict')
  server.put(`org-${orgId}/agents/a`, 'hello')
  expect(await errorCode(() => write('agents/a', 'x', { ifMatch: hash }))).toBe('memory_conflict')
})
