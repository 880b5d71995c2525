import type { Clock } from '../../platform/clock.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { joinKey } from '../memory-key.ts'
import { withinStoreTime } from '../store-time.ts'
import { isStoreError, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'

/** What a store was found to do. */
export interface Capabilities {
  /** Conditional PUT: If-None-Match and If-Match are honoured. */
  readonly casPut: boolean
  readonly casDelete: boolean
  /** The store's clock minus ours. */
  readonly clockSkewMs: number
  readonly details: StoreDetails
}

/** What else is worth knowing of a store, as the view of the configuration shows it. */
export interface StoreDetails {
  /** An object can be copied under another key, by the store itself or through this process. */
  readonly copy: boolean
  /** Whether the store keeps old versions by itself; unknown where it does not say. */
  readonly versioning: 'on' | 'suspended' | 'off' | 'unknown'
  /** A list shows immediately what was just written. */
  readonly lists_at_once: boolean
  /** PUT, HEAD and lists call an object by the same etag. */
  readonly etags_agree: boolean
  /** Metadata of this many bytes come back whole; no more were tried. */
  readonly metadata_bytes: number
}

/** Lengths of one metadata value that are tried, the most that S3 takes first; some stores take 256 bytes a value. The provenance of a write has less. */
const metadataSizes = [1_900, 240] as const

/** Where probe objects are, relative to the organisation's prefix. Outside every scope. */
export const probePrefix = '.brigade-probe/'

const wrongEtag = '"00000000000000000000000000000000"'

/**
 * Writes, reads, overwrites under conditions and deletes one object under the organisation's prefix, to learn whether the store works
 * and which conditions it honours. Throws `unavailable` that says what the store refused, also when all of it takes too long.
 */
export async function probe(given: ObjectStore, orgId: number, clock: Clock, ids: Ids): Promise<Capabilities> {
  return withinStoreTime(clock, undefined, async signal => probeStore(withSignal(given, signal), given, orgId, clock, ids)).catch((error: unknown) => {
    throw error instanceof ObjectStoreError ? unusable(error) : error
  })
}

/** Most bytes that are read back of a probe: a store may send another object than was written, or one without an end. */
const probeBytesMax = 1024

/** What is left of a store that could not be probed is removed by `cleaner`, which has a time of its own. */
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
    // The store may still hold the probe object. It is outside every scope, and the next reconcile removes it.
    await withinStoreTime(clock, undefined, signal => cleaner.delete(key, { signal }), cleaningMsMax).catch(() => {})
    throw error
  }
}

/** What somebody who configures a store reads when it fails. */
export function unusable(cause: ObjectStoreError): GatewayError {
  return fail('unavailable', { message: `The memory store cannot be used: ${cause.message}.`, cause })
}

/** The most time for removing the leftovers of a failed probe; the next reconcile removes what remains. */
const cleaningMsMax = 5_000

/** The store, whose calls end with the signal. */
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
