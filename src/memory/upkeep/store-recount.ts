/**
 * Builds the index of a store that is new to the gateway. It lists the bucket twice, one page at a time: first to check that the content fits, then to add
 * it to the index. The process holds only one page in memory, and no transaction is open during a call to the store.
 */
import type { Db } from '../../platform/db/db.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import { basePrefixOf, isServedKey, relativeKey } from '../memory-key.ts'
import { insertListed } from '../objects/queries.ts'
import type { ListedObject, ObjectStore } from '../stores/object-store.ts'
import { countUsage, lockUsage } from './reconcile-queries.ts'

/** Maximum number of objects that a store may contain under an organisation's prefix when it is configured. */
export const countedObjectsMax = 100_000

interface ServedObject extends ListedObject {
  /** Relative to the organisation's prefix. */
  readonly key: string
}

/** Lists the objects under the prefix. Throws `unavailable` for more objects or bytes than an organisation may have, and ObjectStoreError. */
export async function checkContent(store: ObjectStore, orgId: number, quotaBytes: bigint, signal: AbortSignal): Promise<void> {
  let bytes = 0n
  for await (const page of servedPages(store, orgId, signal)) {
    for (const { sizeBytes } of page) bytes += BigInt(sizeBytes)
    if (bytes > quotaBytes) throw tooMuch(orgId, `more bytes than quota_mb allows. Raise quota_mb, or remove objects`)
  }
}

/**
 * Adds the objects under the prefix of a store that was configured as `generation` to the index. Throws `unavailable` for more objects than an
 * organisation may have, and ObjectStoreError.
 */
export async function bookContent(db: Db, store: ObjectStore, orgId: number, generation: number, signal: AbortSignal): Promise<void> {
  for await (const page of servedPages(store, orgId, signal)) {
    await db.exec(
      insertListed,
      orgId,
      page.map(object => object.key),
      page.map(object => object.etag),
      page.map(object => BigInt(object.sizeBytes)),
      page.map(object => new Date(object.modifiedMs)),
      generation,
    )
  }
  await db.tx(async tx => {
    await tx.one(lockUsage, orgId)
    await tx.one(countUsage, orgId)
  })
}

async function* servedPages(store: ObjectStore, orgId: number, signal: AbortSignal): AsyncGenerator<ServedObject[]> {
  let objects = 0
  let startAfter: string | undefined
  for (;;) {
    signal.throwIfAborted()
    const page = await store.list({ prefix: basePrefixOf(orgId), signal, ...(startAfter === undefined ? {} : { startAfter }) })
    objects += page.objects.length
    if (objects > countedObjectsMax) throw tooMuch(orgId, `more than ${countedObjectsMax} objects, the most that can be taken over. Remove objects`)
    yield page.objects.flatMap(object => {
      const key = relativeKey(orgId, object.key)
      return key === null || !isServedKey(key) ? [] : [{ ...object, key }]
    })
    if (page.next === null) return
    startAfter = page.next
  }
}

function tooMuch(orgId: number, what: string): GatewayError {
  return fail('unavailable', { message: `The memory store cannot be used: under ${basePrefixOf(orgId)} it holds ${what}.` })
}
