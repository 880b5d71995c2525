import type { Clock } from '../../platform/clock.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { joinKey } from '../memory-key.ts'
import { withinStoreTime } from '../store-time.ts'
import { isStoreError, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'

/** The abilities that a probe found. */
export interface Capabilities {
  /** Whether the store honours If-None-Match and If-Match of a PUT. */
  readonly casPut: boolean
  readonly casDelete: boolean
  /** The store's clock minus the clock of this machine. */
  readonly clockSkewMs: number
  readonly details: StoreDetails
}

/** Further abilities of a store, in the form that the view of the configuration shows. */
export interface StoreDetails {
  /** Whether an object can be copied under another key, by the store itself or through this process. */
  readonly copy: boolean
  /** Whether the store keeps old versions by itself. `unknown` when it does not say. */
  readonly versioning: 'on' | 'suspended' | 'off' | 'unknown'
  /** Whether a list immediately shows an object that was just written. */
  readonly lists_at_once: boolean
  /** Whether PUT, HEAD and lists give the same etag for an object. */
  readonly etags_agree: boolean
  /** Number of bytes of metadata that the store returns unchanged. Larger metadata were not tried. */
  readonly metadata_bytes: number
}

/**
 * Lengths, in bytes, of the metadata values that the probe tries. The first is near the maximum of S3. Some stores accept only 256 bytes for one value. The
 * provenance of a write is shorter.
 */
const metadataSizes = [1_900, 240] as const

/** The place of probe objects, relative to the organisation's prefix. It is outside every scope. */
export const probePrefix = '.brigade-probe/'

const wrongEtag = '"00000000000000000000000000000000"'

/**
 * Writes, reads, overwrites under conditions and deletes one object under the organisation's prefix. The result says whether the store works and which
 * conditions it honours. Throws `unavailable` when the store refuses a step, with a message that names the step, or when the whole probe takes too long.
 */
export async function probe(given: ObjectStore, orgId: number, clock: Clock, ids: Ids): Promise<Capabilities> {
  return withinStoreTime(clock, undefined, async signal => probeStore(withSignal(given, signal), given, orgId, clock, ids)).catch((error: unknown) => {
    throw error instanceof ObjectStoreError ? unusable(error) : error
  })
}

/** Maximum number of bytes that the probe reads back. A store may send another object than was written, or an endless one. */
const probeBytesMax = 1024

/** Probes the store. `cleaner`, which has its own time limit, removes the leftovers of a failed probe. */
async function probeStore(store: ObjectStore, cleaner: ObjectStore, orgId: number, clock: Clock, ids: Ids): Promise<Capabilities> {
  const nowMs = clock.nowMs()
  const key = joinKey(orgId, `${probePrefix}${ids.uuidv7(nowMs)}`)
  const copyKey = `${key}-copy`
  const bytes = Buffer.from('probe é\n')
  try {
    const casPut = await conditionalPut(store, key, bytes)
    const written = await putWithMetadata(store, key, bytes)
    const read = await store.get(key, { sizeBytesMax: probeBytesMax })
    if (!read.bytes.equals(bytes)) throw fail('unavailable', { message: 'The store gave back other bytes than were written. It cannot hold memory.' })
    if (!hasMetadata(read.metadata, written.metadataBytes))
      throw fail('unavailable', { message: 'The store does not keep the metadata of an object. It cannot hold memory: who wrote what would be lost.' })
    const listed = (await store.list({ prefix: key, limit: 1 })).objects[0]
    const hasCopy = await copies(store, key, copyKey, bytes)
    const versioning = await (store.versioning?.() ?? 'unknown')
    const casDelete = await conditionalDelete(store, key)
    await store.delete(key)
    const isListed = listed?.key === key
    const etagsAgree = written.etag === read.etag && (!isListed || listed.etag === read.etag)
    const details = { copy: hasCopy, versioning, lists_at_once: isListed, etags_agree: etagsAgree, metadata_bytes: written.metadataBytes }
    return { casPut, casDelete, clockSkewMs: read.modifiedMs - nowMs, details }
  } catch (error) {
    // The store may still contain the probe object. It is outside every scope, and the next reconcile removes it.
    await withinStoreTime(clock, undefined, signal => cleaner.delete(key, { signal }), cleaningMsMax).catch(() => {})
    throw error
  }
}

/** Returns the error for the admin who configures a store that fails. */
export function unusable(cause: ObjectStoreError): GatewayError {
  return fail('unavailable', { message: `The memory store cannot be used: ${cause.message}.`, cause })
}

/** Maximum time for the removal of the leftovers of a failed probe. The next reconcile removes the rest. */
const cleaningMsMax = 5_000

/** Returns the store. The signal aborts all its calls. */
function withSignal(store: ObjectStore, signal: AbortSignal): ObjectStore {
  return {
    get: (key, options) => store.get(key, { ...options, signal }),
    head: (key, options) => store.head(key, { ...options, signal }),
    put: (key, bytes, options) => store.put(key, bytes, { ...options, signal }),
    copy: (from, to, options) => store.copy(from, to, { ...options, signal }),
    delete: (key, options) => store.delete(key, { ...options, signal }),
    list: options => store.list({ ...options, signal }),
    versioning: () => store.versioning?.({ signal }) ?? Promise.resolve('unknown'),
    close: () => store.close(),
  }
}

const metadataText = (size: number): string => 'm'.repeat(size)

function hasMetadata(metadata: Readonly<Record<string, string>>, size: number): boolean {
  return metadata['br-probe'] === metadataText(size)
}

async function putWithMetadata(store: ObjectStore, key: string, bytes: Buffer): Promise<{ etag: string; metadataBytes: number }> {
  for (const size of metadataSizes) {
    try {
      return { ...(await store.put(key, bytes, { metadata: { 'br-probe': metadataText(size) } })), metadataBytes: size }
    } catch (error) {
      if (size === metadataSizes.at(-1) || !(error instanceof ObjectStoreError)) throw error
    }
  }
  throw new ObjectStoreError('unavailable', 'the store takes no metadata')
}

async function copies(store: ObjectStore, from: string, to: string, bytes: Buffer): Promise<boolean> {
  try {
    await store.copy(from, to)
    return (await store.get(to, { sizeBytesMax: probeBytesMax })).bytes.equals(bytes)
  } catch (error) {
    if (error instanceof ObjectStoreError) return false
    throw error
  } finally {
    await store.delete(to).catch(() => {})
  }
}

/** Returns whether the store refuses a second create and a wrong etag, and accepts the right etag. */
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
