import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { lockStore } from '../../src/memory/objects/queries.ts'
import { statement } from '../../src/platform/db/db.ts'
import { toGatewayError } from '../../src/platform/errors.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'

const nextGeneration = statement<[orgId: number, generation: number]>(
  'test.next_generation',
  'update memory_stores set generation = $2::int where org_id = $1::int',
)
const waiting = statement<[], { count: bigint }>('test.waiting', 'select count(*) as count from pg_locks where not granted')

let database: TestDatabase
let one: S3TestServer
let two: S3TestServer
let testing: TestMemory
let orgId = 500
const inputOf = (server: S3TestServer) => ({ endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey })

beforeAll(async () => {
  database = await testDatabase()
  one = await startS3Server()
  two = await startS3Server()
  testing = await testMemory({ db: database.db, allow: [one.hostPort, two.hostPort, '127.0.0.1:1'], timeoutMs: 2000 })
}, 60_000)
afterEach(() => {
  Object.assign(one.faults, {
    noConditions: false,
    ignoreConditions: false,
    down: false,
    lostReplies: 0,
    conflicts: 0,
    slowDowns: 0,
    beforeWrite: async () => {},
  })
  orgId++
})
afterAll(async () => {
  await testing?.close()
  await one?.close()
  await two?.close()
  await database?.dispose()
})

describe('configuring a store', () => {
  test('the view has defaults and a masked access key, never the secret', async () => {
    expect(await testing.memory.config.view(orgId)).toEqual({ configured: false })
    await testing.memory.config.put(orgId, inputOf(one))
    const view = await testing.memory.config.view(orgId)
    expect(view).toMatchObject({
      configured: true,
      endpoint: one.endpoint,
      bucket: one.bucket,
      quota_mb: 1024,
      journal_ttl_days: 30,
      bytes_used: 0,
      capabilities: { conditional_put: true, conditional_delete: true },
    })
    expect(JSON.stringify(view)).not.toContain(one.secretKey)
    expect(JSON.stringify(view)).not.toContain(one.accessKey)
    expect([...one.objects.keys()].filter(key => key.startsWith(`org-${orgId}/`))).toEqual([])
  })

  test('blank credentials keep the stored ones, and are refused in the first configuration', async () => {
    expect(await errorCode(() => testing.memory.config.put(orgId, { endpoint: one.endpoint, bucket: one.bucket }))).toBe('bad_request')
    await testing.memory.config.put(orgId, inputOf(one))
    await testing.memory.config.put(orgId, { endpoint: `${one.endpoint}/`, bucket: one.bucket, access_key: '', secret_key: ' ', quota_mb: 5 })
    expect(await testing.memory.config.view(orgId)).toMatchObject({ quota_mb: 5 })
    await testing.memory.objects.write(callFrom(keyOf(orgId)), 'agents/a', Buffer.from('1'))
  })

  test('a store that refuses the credentials, lacks the bucket or does not answer is not saved', async () => {
    expect(await errorCode(() => testing.memory.config.put(orgId, { ...inputOf(one), secret_key: 'wrong' }))).toBe('unavailable')
    expect(await errorCode(() => testing.memory.config.put(orgId, { ...inputOf(one), bucket: 'other' }))).toBe('unavailable')
    expect(await errorCode(() => testing.memory.config.put(orgId, { ...inputOf(one), endpoint: 'http://127.0.0.1:1' }))).toBe('unavailable')
    expect(await testing.memory.config.view(orgId)).toEqual({ configured: false })
  })

  test('an endpoint at an internal address is refused before a connection is made', async () => {
    for (const endpoint of [
      'http://127.0.0.1:9',
      'https://127.0.0.1:9',
      'https://169.254.169.254',
      'https://[::1]',
      'https://user:pw@example.com',
      'ftp://example.com',
      'nonsense',
    ])
      expect(await errorCode(() => testing.memory.config.put(orgId, { ...inputOf(one), endpoint }))).toBe('bad_request')
    expect(await errorCode(() => testing.memory.config.put(orgId, { ...inputOf(one), endpoint: 'https://localhost:9' }))).toBe('bad_request')
  })

  test('the probe detects a store that refuses conditions, and a store that ignores them silently', async () => {
    one.faults.noConditions = true
    await testing.memory.config.put(orgId, inputOf(one))
    expect(await testing.memory.config.view(orgId)).toMatchObject({ capabilities: { conditional_put: false, conditional_delete: false } })
    one.faults.noConditions = false
    one.faults.ignoreConditions = true
    await testing.memory.config.put(orgId + 1, inputOf(one))
    expect(await testing.memory.config.view(++orgId)).toMatchObject({ capabilities: { conditional_put: false, conditional_delete: false } })
  })

  test('changing the place of a store that contains memory needs a confirmation, moves no objects, and counts those of the new place', async () => {
    const call = callFrom(keyOf(orgId))
    await testing.memory.config.put(orgId, inputOf(one))
    await testing.memory.objects.write(call, 'agents/a', Buffer.from('12345'))
    two.put(`org-${orgId}/agents/there`, 'abc')
    const error = toGatewayError(await testing.memory.config.put(orgId, inputOf(two)).catch((thrown: unknown) => thrown))
    expect(error.errorName).toBe('store_path_change_in_use')
    expect(error.toBody()).toMatchObject({ usage: { bytes_used: 5, objects: 1 } })
    expect(await errorCode(() => testing.memory.config.put(orgId, { region: 'eu-west-1', quota_mb: 7, journal_ttl_days: 3 }))).toBe('ok')
    await testing.memory.config.put(orgId, { ...inputOf(two), confirm_path_change: true })
    expect(await testing.memory.config.view(orgId)).toMatchObject({ endpoint: two.endpoint, bytes_used: 3, quota_mb: 7, journal_ttl_days: 3 })
    expect((await testing.memory.objects.list(call, '')).map(({ key, author }) => ({ key, author }))).toEqual([{ key: 'agents/there', author: null }])
    expect(one.objects.has(`org-${orgId}/agents/a`)).toBe(true)
  })

  test('a folder store is refused when the operator does not allow it', async () => {
    const strict = await testMemory({ db: database.db, isFolderAllowed: false })
    expect(await errorCode(() => strict.memory.config.put(orgId, { store: 'folder' }))).toBe('bad_request')
    await strict.close()
  })
})

describe('a store that fails', () => {
  test('while a store is down, calls fail without being counted, and afterwards the same key works immediately', async () => {
    const call = callFrom(keyOf(orgId))
    const { objects } = testing.memory
    await testing.memory.config.put(orgId, inputOf(one))
    one.faults.down = true
    for (const work of [
      () => objects.write(call, 'agents/a', Buffer.from('1')),
      () => objects.read(call, 'agents/a'),
      () => objects.list(call, ''),
      () => objects.remove(call, 'agents/a'),
    ])
      expect(await errorCode(work)).toBe('memory_store_failed')
    expect((await testing.usage(orgId)).usedBytes).toBe(0n)
    one.faults.down = false
    await objects.write(call, 'agents/a', Buffer.from('1'))
    expect(await testing.usage(orgId)).toEqual({ usedBytes: 1n, reservedBytes: 0n, objects: 1n })
  })

  test('a write whose reply is lost counts once, with and without a condition', async () => {
    const call = callFrom(keyOf(orgId))
    const { objects } = testing.memory
    await testing.memory.config.put(orgId, inputOf(one))
    one.faults.lostReplies = 2
    await objects.write(call, 'agents/a', Buffer.from('12'))
    one.faults.lostReplies = 1
    const { etag } = await objects.write(call, 'agents/b', Buffer.from('345'), { ifNoneMatch: '*' })
    expect((await objects.read(call, 'agents/b')).etag).toBe(etag)
    expect(await testing.usage(orgId)).toEqual({ usedBytes: 5n, reservedBytes: 0n, objects: 2n })
  })

  test('a conditional write is tried again when the store refuses it because of another running conditional write', async () => {
    const call = callFrom(keyOf(orgId))
    await testing.memory.config.put(orgId, inputOf(one))
    one.faults.conflicts = 2
    await testing.memory.objects.write(call, 'agents/a', Buffer.from('1'), { ifNoneMatch: '*' })
  })

  test('the sweep settles a write that reached the store and releases one that did not', async () => {
    const call = callFrom(keyOf(orgId))
    const { objects } = testing.memory
    await testing.memory.config.put(orgId, inputOf(one))
    // Both writers lose their connections. The first write is in the store, and the second is not.
    let isWritten = false
    one.faults.beforeWrite = async () => {
      isWritten = true
      one.faults.lostReplies = 9
    }
    const first = objects.write(call, 'agents/reached', Buffer.from('1234')).catch(() => 'failed')
    while (!isWritten) await new Promise(resolve => setImmediate(resolve))
    one.faults.down = true
    await first
    await errorCode(() => objects.write(call, 'agents/not-reached', Buffer.from('1')))
    expect((await testing.usage(orgId)).usedBytes).toBe(0n)
    expect((await testing.usage(orgId)).reservedBytes).toBe(5n)
    expect(await testing.memory.sweep(testing.clock.nowMs())).toBe(0)
    one.faults.down = false
    one.faults.lostReplies = 0
    one.faults.beforeWrite = async () => {}
    // The sweep skips a store that did not answer for 15 s.
    expect(await testing.memory.sweep(testing.clock.nowMs())).toBe(0)
    expect(await testing.memory.sweep(testing.clock.nowMs() + 15_001)).toBe(2)
    expect(await testing.usage(orgId)).toEqual({ usedBytes: 4n, reservedBytes: 0n, objects: 1n })
  })

  test('a write that runs during a change of place does not count in the new store', async () => {
    const call = callFrom(keyOf(orgId))
    await testing.memory.config.put(orgId, inputOf(one))
    let go = (): void => {}
    const reached = new Promise<void>(resolve => {
      one.faults.beforeWrite = key =>
        key.endsWith('agents/late')
          ? new Promise<void>(open => {
              go = open
              resolve()
            })
          : Promise.resolve()
    })
    const late = errorCode(() => testing.memory.objects.write(call, 'agents/late', Buffer.from('1')))
    await reached
    await testing.memory.config.put(orgId, { ...inputOf(two), confirm_path_change: true })
    go()
    expect(await late).toBe('memory_store_failed')
    expect(await testing.usage(orgId)).toEqual({ usedBytes: 0n, reservedBytes: 0n, objects: 0n })
  })

  test.runIf(onPostgres)('while a store is reconfigured no write goes to the old one', async () => {
    const call = callFrom(keyOf(orgId))
    await testing.memory.config.put(orgId, inputOf(one))
    await testing.memory.objects.write(call, 'agents/a', Buffer.from('123'))
    let write: Promise<string> = Promise.resolve('')
    await database.db.tx(async tx => {
      const row = await tx.one(lockStore, orgId)
      await tx.exec(nextGeneration, orgId, row.generation + 1)
      let ended = false
      write = errorCode(() => testing.memory.objects.write(call, 'agents/a', Buffer.from('1'))).finally(() => {
        ended = true
      })
      await until(async () => ended || (await database.db.one(waiting)).count > 0n, 'the write has ended or waits')
      expect(ended).toBe(false)
    })
    expect(await write).toBe('ok')
    expect(await testing.usage(orgId)).toEqual({ usedBytes: 1n, reservedBytes: 0n, objects: 1n })
  })

  test.runIf(onPostgres)('writes that settle during a change of place do not deadlock and do not count in the new store', async () => {
    const call = callFrom(keyOf(orgId))
    await testing.memory.config.put(orgId, inputOf(one))
    for (let round = 0; round < 10; round++) {
      const writes = Array.from({ length: 8 }, (_, n) => errorCode(() => testing.memory.objects.write(call, `agents/${round}-${n}`, Buffer.from('1234'))))
      await Promise.race(writes)
      await testing.memory.config.put(orgId, { ...inputOf(round % 2 === 0 ? two : one), confirm_path_change: true })
      for (const outcome of await Promise.all(writes)) expect(['ok', 'memory_store_failed']).toContain(outcome)
      const server = round % 2 === 0 ? two : one
      const stored = [...server.objects].filter(([key]) => key.startsWith(`org-${orgId}/agents/`)).length
      expect(await testing.usage(orgId)).toEqual({ usedBytes: BigInt(stored * 4), reservedBytes: 0n, objects: BigInt(stored) })
    }
  })
})
