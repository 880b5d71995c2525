/** A memory service on one of the stores, for a describe block. It starts before the tests of the block and closes after them. */
import { afterAll, beforeAll } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import type { StoreInput } from '../../src/memory/config/store-input.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { callFrom, keyOf, type TestMemory, type TestMemoryOptions, testMemory } from './service.ts'
import type { Peer, PeerKind } from './stores.ts'

export interface MemoryOn {
  readonly db: Db
  readonly peer: Peer
  readonly testing: TestMemory
  /** Makes a new organisation on the store. Returns its id and a call of one of its keys. */
  org(more?: StoreInput): Promise<{ orgId: number; call: MemoryCall }>
}

/** Call it inside `describe`. The returned service is ready when the tests run. */
export function memoryOn(kind: PeerKind, more: Pick<TestMemoryOptions, 'agentByLabel'> = {}): MemoryOn {
  let database: TestDatabase
  let peer: Peer
  let testing: TestMemory
  let nextOrg = 100
  beforeAll(async () => {
    database = await testDatabase()
    peer = await kind.start()
    testing = await testMemory({ db: database.db, allow: peer.hostPort === null ? [] : [peer.hostPort], ...more })
  }, 180_000)
  afterAll(async () => {
    await testing?.close()
    await peer?.close()
    await database?.dispose()
  })
  return {
    get db() {
      return database.db
    },
    get peer() {
      return peer
    },
    get testing() {
      return testing
    },
    async org(input = {}) {
      const orgId = nextOrg++
      await testing.memory.config.put(orgId, { ...peer.input, ...input })
      return { orgId, call: callFrom(keyOf(orgId)) }
    },
  }
}
