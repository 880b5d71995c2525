import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import type { StoreInput } from '../../src/memory/config/store-input.ts'
import { claimReconciles } from '../../src/memory/upkeep/reconcile-queries.ts'
import { statement } from '../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'
import { type Peer, peers } from './stores.ts'

const addOrg = statement<[orgId: number]>(
  'test.add_reconciled_org',
  `insert into orgs (id, name, kind, created_at) values ($1::int, 'Reconcile ' || $1::text, 'personal', now())`,
)
const bareIndex = statement<[orgId: number, key: string]>(
  'test.bare_index',
  `insert into memory_objects (org_id, key, etag, size_bytes, written_at) values ($1::int, $2::text, '"x"', 5, now())`,
)

const signal = new AbortController().signal

for (const kind of peers) {
  describe.skipIf(!kind.isInstalled)(`reconcile on ${kind.name}${kind.isInstalled ? '' : ' (not installed)'}`, () => {
    let database: TestDatabase
    let peer: Peer
    let testing: TestMemory
    beforeAll(async () => {
      database = await testDatabase()
      peer = await kind.start()
      testing = await testMemory({ db: database.db, allow: peer.hostPort === null ? [] : [peer.hostPort] })
    }, 120_000)
    afterAll(async () => {
      await testing?.close()
      await peer?.close()
      await database?.dispose()
    })

    test('a comparison finds objects that were added, replaced and removed directly in the bucket, and list and quota then agree', async () => {
      const orgId = 700
      const call = callFrom(keyOf(orgId))
      // The folder of the peer differs from the gateway's folder. For a folder store, the test changes the gateway's own store.
      await testing.memory.config.put(orgId, peer.input)
      const { store } = await testing.memory.configured(orgId)
      const { objects, reconcile } = testing.memory
      for (const name of ['kept', 'changed', 'removed']) await objects.write(call, `agents/${name}`, Buffer.from(name))
      await store.put(`org-${orgId}/agents/changed`, Buffer.from('by somebody else'))
      await store.put(`org-${orgId}/agents/added`, Buffer.from('12'))
      await store.put(`org-${orgId}/agents//not a key`, Buffer.from('does not count'))
      await store.delete(`org-${orgId}/agents/removed`)
      const result = await reconcile.run(orgId, signal)
      expect(result).toEqual({ checked: 3, added: 1, changed: 1, removed: 1, skipped: 0, orphans_removed: 0, bytes_used: 4 + 16 + 2 })
      const listed = await objects.list(call, 'agents/')
      expect(listed.map(({ key, size, author }) => ({ key, size, author }))).toEqual([
        { key: 'agents/added', size: 2, author: null },
        { key: 'agents/changed', size: 16, author: null },
        { key: 'agents/kept', size: 4, author: { user: '7' } },
      ])
      expect(await testing.usage(orgId)).toEqual({ usedBytes: 22n, reservedBytes: 0n, objects: 3n })
      expect(await reconcile.run(orgId, signal)).toMatchObject({ added: 0, changed: 0, removed: 0, bytes_used: 22 })
      await objects.remove(call, 'agents/added')
      expect((await testing.usage(orgId)).usedBytes).toBe(20n)
    })
  })
}

describe('a reconcile', () => {
  let database: TestDatabase
  let server: S3TestServer
  let testing: TestMemory
  /** Another process on the same database. */
  let others: TestMemory
  let orgId = 1000
  let call: MemoryCall
  let input: StoreInput
  beforeAll(async () => {
    database = await testDatabase()
    server = await startS3Server()
    testing = await testMemory({ db: database.db, allow: [server.hostPort] })
    others = await testMemory({ db: database.db, allow: [server.hostPort] })
    input = { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey, history_versions: 0 }
  }, 60_000)
  beforeEach(async () => {
    orgId++
    call = callFrom(keyOf(orgId))
    server.faults.beforeWrite = async () => {}
    await testing.memory.config.put(orgId, input)
  })
  afterAll(async () => {
    await testing?.close()
    await others?.close()
    await server?.close()
    await database?.dispose()
  })

  test('a comparison of several pages finds a difference at every page border, in the bucket and in the index', async () => {
    for (let n = 0; n < 1_100; n++) server.put(`org-${orgId}/agents/${String(n).padStart(5, '0')}`, 'ab')
    expect(await testing.memory.reconcile.run(orgId, signal)).toMatchObject({ checked: 1_100, added: 1_100, bytes_used: 2_200 })
    for (const n of [0, 998, 999, 1000, 1001, 1099]) server.objects.delete(`org-${orgId}/agents/${String(n).padStart(5, '0')}`)
    server.put(`org-${orgId}/agents/99999`, 'abc')
    server.put(`org-${orgId}/agents/00500`, 'abcd')
    expect(await testing.memory.reconcile.run(orgId, signal)).toMatchObject({ checked: 1_095, added: 1, changed: 1, removed: 6, bytes_used: 1_093 * 2 + 3 + 4 })
    for (const key of [...server.objects.keys()].filter(key => key.startsWith(`org-${orgId}/`))) server.objects.delete(key)
    expect(await testing.memory.reconcile.run(orgId, signal)).toMatchObject({ checked: 0, removed: 1_095, bytes_used: 0 })
  })

  test('a comparison does not change running writes, and ignores a difference that has disappeared meanwhile', async () => {
    const { objects, reconcile } = testing.memory
    await objects.write(call, 'agents/a', Buffer.from('1'))
    let letGo = (): void => {}
    const reached = new Promise<void>(resolve => {
      server.faults.beforeWrite = key =>
        key.endsWith('agents/a')
          ? new Promise<void>(open => {
              letGo = open
              resolve()
            })
          : Promise.resolve()
    })
    const running = objects.write(call, 'agents/a', Buffer.from('22'))
    await reached
    server.put(`org-${orgId}/agents/a`, 'changed directly')
    expect(await reconcile.run(orgId, signal)).toMatchObject({ changed: 0, skipped: 1 })
    server.faults.beforeWrite = async () => {}
    letGo()
    await running
    await database.db.exec(bareIndex, orgId, 'agents/ghost')
    expect(await reconcile.run(orgId, signal)).toMatchObject({ changed: 0, removed: 1, skipped: 0, bytes_used: 2 })
  })

  test('a comparison does no harm during another comparison and during writes', async () => {
    const { objects, reconcile } = testing.memory
    for (let n = 0; n < 60; n++) server.put(`org-${orgId}/agents/x${n}`, 'foreign')
    const writers = Array.from({ length: 40 }, (_, n) => errorCode(() => objects.write(call, `agents/x${n % 20}`, Buffer.alloc(n))))
    // One process runs only one comparison of a store at a time, but another process can run one concurrently.
    const here = reconcile.run(orgId, signal)
    expect(await errorCode(() => reconcile.run(orgId, signal))).toBe('memory_busy')
    const results = await Promise.all([here, others.memory.reconcile.run(orgId, signal)])
    expect(new Set(await Promise.all(writers))).toEqual(new Set(['ok']))
    expect(results.reduce((sum, { added }) => sum + added, 0)).toBeLessThanOrEqual(60)
    await reconcile.run(orgId, signal)
    const bytes = [...server.objects].filter(([key]) => key.startsWith(`org-${orgId}/`)).reduce((sum, [, object]) => sum + BigInt(object.bytes.length), 0n)
    expect(await testing.usage(orgId)).toEqual({ usedBytes: bytes, reservedBytes: 0n, objects: 60n })
  })

  test('a comparison removes old leftovers of probes and versions, and keeps recent ones and those in the index', async () => {
    const { objects, reconcile } = testing.memory
    const age = (key: string): void => {
      const found = server.objects.get(key)
      if (found !== undefined) server.objects.set(key, { ...found, modified: new Date(testing.clock.nowMs() - 2 * 3_600_000) })
    }
    await testing.memory.config.put(orgId, { history_versions: 5 })
    await objects.write(call, 'agents/a', Buffer.from('one'))
    await objects.write(call, 'agents/a', Buffer.from('two'))
    const prefix = `org-${orgId}/`
    for (const name of ['.versions/01930000-0000-7000-8000-000000000000', '.versions/young', '.brigade-probe/old', '.brigade-probe/young', 'README'])
      server.put(prefix + name, 'x')
    for (const key of [...server.objects.keys()]) if (key.startsWith(prefix) && !key.endsWith('young')) age(key)
    expect(await reconcile.run(orgId, signal)).toMatchObject({ checked: 1, added: 0, removed: 0, orphans_removed: 2 })
    const left = [...server.objects.keys()].filter(key => key.startsWith(`${prefix}.`)).map(key => key.slice(prefix.length))
    expect(left).toEqual(expect.arrayContaining(['.versions/young', '.brigade-probe/young']))
    expect(left).toHaveLength(3)
    expect(server.objects.has(`${prefix}README`)).toBe(true)
  })

  test('a comparison without a store, or of a store that is down, fails with an error that says so', async () => {
    expect(await errorCode(() => testing.memory.reconcile.run(999_999, signal))).toBe('memory_not_configured')
    await testing.memory.objects.write(call, 'agents/a', Buffer.from('1'))
    server.faults.down = true
    expect(await errorCode(() => testing.memory.reconcile.run(orgId, signal))).toBe('memory_store_failed')
    server.faults.down = false
    expect((await testing.usage(orgId)).usedBytes).toBe(1n)
  })

  test('a comparison adds and changes a bounded number of objects, continues at the next request, and adds none to a full index', async () => {
    const bounded = await testMemory({ db: database.db, allow: [server.hostPort], reconcileBounds: { correctedMax: 1_000, indexedMax: 2_500 } })
    const keyAt = (n: number): string => `org-${orgId}/agents/${String(n).padStart(5, '0')}`
    const compared = () => errorCode(() => bounded.memory.reconcile.run(orgId, signal))
    const indexed = async () => (await testing.usage(orgId)).objects
    for (let n = 0; n < 2_100; n++) server.put(keyAt(n), 'ab')
    expect(await compared()).toBe('memory_store_failed')
    expect(await indexed()).toBe(2_000n)
    expect(await compared()).toBe('ok')
    for (let n = 0; n < 2_100; n++) server.put(keyAt(n), 'abc')
    expect(await compared()).toBe('memory_store_failed')
    expect(await compared()).toBe('ok')
    expect(await testing.usage(orgId)).toMatchObject({ objects: 2_100n, usedBytes: 6_300n })
    for (let n = 2_100; n < 2_600; n++) server.put(keyAt(n), 'ab')
    expect(await compared()).toBe('memory_store_failed')
    expect(await indexed()).toBe(2_100n)
    // Removed objects make room in the index.
    for (let n = 0; n < 200; n++) server.objects.delete(keyAt(n))
    expect(await compared()).toBe('ok')
    expect(await indexed()).toBe(2_400n)
    await bounded.close()
  }, 60_000)

  test('a comparison in turns continues where the last turn stopped, in any process and after a failure, with the same result as a whole one', async () => {
    await database.db.exec(addOrg, orgId)
    const keyAt = (n: number): string => `org-${orgId}/agents/${String(n).padStart(5, '0')}`
    for (let n = 0; n < 2_100; n++) server.put(keyAt(n), 'ab')
    const turn = (from: TestMemory) => from.memory.reconcile.turn(orgId, signal, 0)
    const reconciledAt = async () => (await testing.memory.config.view(orgId)).reconciled_at
    expect(await turn(testing)).toMatchObject({ checked: 1_000, added: 1_000 })
    // This key is before the saved place, so only the next whole comparison finds it.
    server.put(keyAt(0), 'abc')
    server.faults.down = true
    expect(await errorCode(() => turn(others))).toBe('memory_store_failed')
    server.faults.down = false
    expect(await turn(others)).toMatchObject({ checked: 1_000, added: 1_000, changed: 0 })
    expect(await reconciledAt()).toBeUndefined()
    expect(await turn(testing)).toMatchObject({ checked: 100, added: 100, bytes_used: 4_200 })
    expect(await reconciledAt()).toMatch(/^20/)
    expect(await turn(testing)).toMatchObject({ checked: 1_000, added: 0, changed: 1 })
    // A saved place is invalid after the store was reconfigured.
    await testing.memory.config.put(orgId, { ...input, addressing: 'path' })
    server.put(keyAt(1), 'abcd')
    expect(await turn(testing)).toMatchObject({ checked: 1_000, changed: 1 })
    expect(await testing.memory.reconcile.run(orgId, signal)).toMatchObject({ checked: 2_100, changed: 0, bytes_used: 4_203 })
  }, 60_000)

  test('an unfinished comparison lets other due stores run first, and is due again soon', async () => {
    await database.db.exec(addOrg, orgId)
    for (let n = 0; n < 1_001; n++) server.put(`org-${orgId}/agents/${n}`, 'ab')
    await testing.memory.reconcile.turn(orgId, signal, 0)
    testing.clock.advance(61_000)
    await testing.memory.reconcile.runDue(signal)
    expect((await testing.usage(orgId)).usedBytes).toBe(2_002n)
    expect(await testing.memory.config.view(orgId)).toMatchObject({ reconciled_at: expect.stringMatching(/^20/) })
  })

  test('the regular job compares each store once a day', async () => {
    await database.db.exec(addOrg, orgId)
    server.put(`org-${orgId}/agents/a`, '123')
    await testing.memory.reconcile.runDue(signal)
    expect((await testing.usage(orgId)).usedBytes).toBe(0n)
    testing.clock.advance(25 * 3_600_000)
    await testing.memory.reconcile.runDue(signal)
    expect((await testing.usage(orgId)).usedBytes).toBe(3n)
    expect(await testing.memory.config.view(orgId)).toMatchObject({ reconciled_at: expect.stringMatching(/^20/) })
    const now = new Date(testing.clock.nowMs())
    expect((await database.db.many(claimReconciles, now, now, 1_000)).map(row => row.orgId)).not.toContain(orgId)
  })
})
