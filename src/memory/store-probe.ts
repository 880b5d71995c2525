import type { Clock } from '../platform/clock.ts'
import { fail } from '../platform/errors.ts'
import type { Ids } from '../platform/ids.ts'
import { joinKey } from './memory-key.ts'
import { isStoreError, type ObjectStore, ObjectStoreError } from './object-store.ts'

/** What a store was found to do. */
export interface Capabilities {
  /** Conditional PUT: If-None-Match and If-Match are honoured. */
  readonly casPut: boolean
  readonly casDelete: boolean
  /** The store's clock minus ours. */
  readonly clockSkewMs: number
}

const wrongEtag = '"00000000000000000000000000000000"'

/**
 * Writes, reads, overwrites under conditions and deletes one object under the organisation's prefix, to learn whether the store works
 * and which conditions it honours. Throws `unavailable` that says what the store refused.
 */
export async function probe(store: ObjectStore, orgId: number, clock: Clock, ids: Ids): Promise<Capabilities> {
  const nowMs = clock.nowMs()
  const key = joinKey(orgId, `.brigade-probe/${ids.uuidv7(nowMs)}`)
  const bytes = Buffer.from('probe é\n')
  try {
    const casPut = await conditionalPut(store, key, bytes)
    if (!casPut) await store.put(key, bytes)
    const read = await store.get(key)
    if (!read.bytes.equals(bytes)) throw fail('unavailable', { message: 'The store gave back other bytes than were written. It cannot hold memory.' })
    const listed = await store.list({ prefix: key, limit: 1 })
    if (listed.objects[0]?.key !== key) throw fail('unavailable', { message: 'The store does not list what was written.' })
    const casDelete = await conditionalDelete(store, key)
    await store.delete(key)
    return { casPut, casDelete, clockSkewMs: read.modifiedMs - nowMs }
  } catch (error) {
    // The store may hold the probe object still; it lies outside every scope and nobody can read it.
    await store.delete(key).catch(() => {})
    if (error instanceof ObjectStoreError) throw fail('unavailable', { message: `The memory store cannot be used: ${error.message}.`, cause: error })
    throw error
  }
}

/** True when a second create and a wrong etag are refused and the right etag is accepted. */
async function conditionalPut(store: ObjectStore, key: string, bytes: Buffer): Promise<boolean> {
  let etag: string
  try {
    etag = (await store.put(key, bytes, { ifNoneMatch: '*' })).etag
  } catch (error) {
    if (isStoreError(error, 'unsupported')) return false
    throw error
  }
  if (!(await isRefused(() => store.put(key, bytes, { ifNoneMatch: '*' })))) return false
  if (!(await isRefused(() => store.put(key, bytes, { ifMatch: wrongEtag })))) return false
  return !(await isRefused(() => store.put(key, bytes, { ifMatch: etag })))
}

async function conditionalDelete(store: ObjectStore, key: string): Promise<boolean> {
  return (await isRefused(() => store.delete(key, { ifMatch: wrongEtag }))) && (await store.head(key)) !== null
}

async function isRefused(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call()
    return false
  } catch (error) {
    if (isStoreError(error, 'precondition-failed')) return true
    if (isStoreError(error, 'unsupported')) return false
    throw error
  }
}
