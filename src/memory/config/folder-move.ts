/** Moves the memory of one organisation from a folder store to another store, object by object. Each object is read back and compared. */
import { createHash } from 'node:crypto'
import { basePrefixOf, relativeKey } from '../memory-key.ts'
import { isStoreError, type ObjectStore } from '../stores/object-store.ts'
import { type FolderObject, folderObjects } from '../stores/object-store-folder.ts'
import { probePrefix } from './store-probe.ts'

/** The objects that the new store contains after a move. */
export interface MovedObjects {
  readonly objects: number
  readonly bytes: number
  /** SHA-256 over the key and the SHA-256 of every object, in the order of the keys. Both stores give the same value. */
  readonly sha256: string
  /** Keys relative to the organisation's prefix, with the etag in the old store and the etag in the new store. */
  readonly etags: readonly { readonly key: string; readonly before: string; readonly after: string }[]
}

/** The new store already contains another object under this key. The message says what to do. */
export class StrangeObjectError extends Error {
  override readonly name = 'StrangeObjectError'
}

const copiesAtOnce = 8

/**
 * Copies the objects of an organisation, with their versions and markers. An object that the new store already contains with the same bytes and metadata is
 * skipped, so an interrupted copy can continue. Throws StrangeObjectError when the new store contains any other object below the organisation's prefix.
 */
export async function moveFolder(root: string, orgId: number, target: ObjectStore): Promise<MovedObjects> {
  const there = await keysIn(target, orgId)
  const found: FolderObject[] = []
  for await (const object of folderObjects(root)) found.push(object)
  found.sort((a, b) => (a.key < b.key ? -1 : 1))
  const ours = new Set(found.map(({ key }) => key))
  const foreign = [...there].find(key => !ours.has(key))
  if (foreign !== undefined) throw strange(foreign)
  const sums: { key: string; before: string; after: string; sha256: string; bytes: number }[] = []
  for (let at = 0; at < found.length; at += copiesAtOnce)
    sums.push(...(await Promise.all(found.slice(at, at + copiesAtOnce).map(object => moveObject(object, target, there.has(object.key))))))
  const hash = createHash('sha256')
  for (const { key, sha256 } of sums) hash.update(`${key}\n${sha256}\n`)
  return {
    objects: sums.length,
    bytes: sums.reduce((sum, { bytes }) => sum + bytes, 0),
    sha256: hash.digest('hex'),
    etags: sums.flatMap(({ key, before, after }) => {
      const relative = relativeKey(orgId, key)
      return relative === null ? [] : [{ key: relative, before, after }]
    }),
  }
}

async function moveObject(
  object: FolderObject,
  target: ObjectStore,
  isThere: boolean,
): Promise<{ key: string; before: string; after: string; sha256: string; bytes: number }> {
  const { key, metadata, contentType } = object
  const bytes = await object.bytes()
  const put = isThere ? null : await target.put(key, bytes, { metadata, contentType })
  const arrived = await target.get(key, { sizeBytesMax: bytes.length }).catch((error: unknown) => {
    if (isStoreError(error, 'too-large')) throw strange(key)
    if (isStoreError(error, 'not-found')) throw new StrangeObjectError(`The bucket does not give back ${key} that was just written to it.`)
    throw error
  })
  const isWhole = arrived.bytes.equals(bytes) && Object.entries(metadata).every(([name, value]) => arrived.metadata[name] === value)
  if (!isWhole) throw strange(key)
  return { key, before: object.etag, after: put?.etag ?? arrived.etag, sha256: createHash('sha256').update(arrived.bytes).digest('hex'), bytes: bytes.length }
}

async function keysIn(store: ObjectStore, orgId: number): Promise<Set<string>> {
  const prefix = basePrefixOf(orgId)
  const keys = new Set<string>()
  let startAfter: string | undefined
  for (;;) {
    const page = await store.list({ prefix, ...(startAfter === undefined ? {} : { startAfter }) })
    for (const { key } of page.objects) if (!key.startsWith(prefix + probePrefix)) keys.add(key)
    if (page.next === null) return keys
    startAfter = page.next
  }
}

function strange(key: string): StrangeObjectError {
  return new StrangeObjectError(
    `The bucket holds ${key}, which is not what this installation has under that key. Empty the prefix ${key.split('/')[0]}/ or give another bucket; what an interrupted move of the same data left there is no problem.`,
  )
}
