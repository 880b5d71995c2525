/**
 * Finds the first keys of a folder store in bytewise order. The keys come from the names of files, so only the objects of one page are opened. Directories
 * are read some hundred entries at a time, and other work of the process runs in between. Decision 0521 says why.
 */
import type { Dir } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, guarded } from './folder-failures.ts'
import { directoriesOfPrefix, segmentOf, sidecarEnd } from './folder-names.ts'
import type { ListOptions } from './object-store.ts'

/** Number of entries of a directory that are read before other work of the process gets its turn. */
const entriesAtOnce = 256
/** Number of sidecars that are opened concurrently for keys that are not in their file names. */
const readsAtOnce = 16
const slash = Buffer.from('/')

export interface FirstKeys {
  /** In bytewise order. With `byFolder`, a folder is a key that ends with a slash. */
  readonly keys: readonly string[]
  /** The last of the keys when there are more. */
  readonly next: string | null
}

/**
 * Returns the first keys of a list. `readKey` returns the key of a sidecar whose name does not contain it, or null. Throws ObjectStoreError, and the reason
 * of the signal.
 */
export async function firstKeys(
  root: string,
  options: ListOptions & { readonly limit: number },
  readKey: (path: string) => Promise<string | null>,
): Promise<FirstKeys> {
  const first = new Smallest(options.limit + 1, Buffer.from(options.prefix), options.startAfter === undefined ? null : Buffer.from(options.startAfter))
  const names = directoriesOfPrefix(options.prefix)
  const bases = names.map(segmentOf)
  const base = bases.some(each => each === null) ? null : Buffer.concat(bases.flatMap(each => [each as Buffer, slash]))
  const left: Folder[] = [{ path: join(root, ...names), base }]
  let unnamed: string[] = []
  const readUnnamed = async (): Promise<void> => {
    for (const key of await Promise.all(unnamed.map(readKey))) if (key !== null) first.add(Buffer.from(key))
    unnamed = []
  }
  for (let folder = left.pop(); folder !== undefined; folder = left.pop()) {
    for await (const { name, isFolder } of entriesOf(folder.path, options.signal)) {
      const segment = folder.base === null ? null : segmentOf(isFolder ? name : name.slice(0, -sidecarEnd.length))
      const key = segment === null ? null : Buffer.concat([folder.base as Buffer, segment])
      if (isFolder) {
        const below = key === null ? null : Buffer.concat([key, slash])
        if (options.byFolder === true && below !== null && first.isFolderBelow(below)) {
          if (first.accepts(below) && (await hasObjects(join(folder.path, name), options.signal))) first.add(below)
        } else if (below === null || first.mayBeBelow(below)) left.push({ path: join(folder.path, name), base: below })
      } else if (key !== null) first.add(key)
      else if (unnamed.push(join(folder.path, name)) === readsAtOnce) await readUnnamed()
    }
    await readUnnamed()
  }
  const keys = first.sorted().map(key => key.toString())
  return keys.length > options.limit ? { keys: keys.slice(0, -1), next: keys.at(-2) ?? null } : { keys, next: null }
}

/** Returns whether there is an object in a directory or below it. A deletion can leave a directory behind for a moment. */
async function hasObjects(path: string, signal: AbortSignal | undefined): Promise<boolean> {
  const folders: string[] = []
  for await (const { name, isFolder } of entriesOf(path, signal)) {
    if (!isFolder) return true
    folders.push(join(path, name))
  }
  for (const folder of folders) if (await hasObjects(folder, signal)) return true
  return false
}

interface Folder {
  readonly path: string
  /** The beginning of every key below it. Null when a name on the way does not contain its segment. */
  readonly base: Buffer | null
}

/** Yields the sidecars and folders in a directory. A directory that is gone has none. */
async function* entriesOf(path: string, signal: AbortSignal | undefined): AsyncGenerator<{ readonly name: string; readonly isFolder: boolean }> {
  const directory = await guarded(() => opened(path))
  if (directory === null) return
  const entries = directory[Symbol.asyncIterator]()
  try {
    for (let next = await guarded(() => entries.next()); next.done !== true; next = await guarded(() => entries.next())) {
      signal?.throwIfAborted()
      const { name } = next.value
      if (next.value.isDirectory()) yield { name, isFolder: true }
      else if (name.endsWith(sidecarEnd) && next.value.isFile()) yield { name, isFolder: false }
    }
  } finally {
    await entries.return?.()
  }
}

async function opened(path: string): Promise<Dir | null> {
  try {
    return await opendir(path, { bufferSize: entriesAtOnce })
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Keeps the smallest keys with a prefix that come after another key. It needs memory for twice as many. */
class Smallest {
  readonly #most: number
  readonly #prefix: Buffer
  readonly #after: Buffer | null
  #keys: Buffer[] = []
  /** No key from this one on is kept. Null while everything is kept. */
  #end: Buffer | null = null

  constructor(most: number, prefix: Buffer, after: Buffer | null) {
    this.#most = most
    this.#prefix = prefix
    this.#after = after
  }

  add(key: Buffer): void {
    if (!this.accepts(key)) return
    this.#keys.push(key)
    if (this.#keys.length >= 2 * this.#most) this.sorted()
  }

  /** Returns whether this key is kept. */
  accepts(key: Buffer): boolean {
    if (this.#end !== null && Buffer.compare(key, this.#end) >= 0) return false
    return startsWith(key, this.#prefix) && (this.#after === null || Buffer.compare(key, this.#after) > 0)
  }

  /** Returns whether this folder is below the prefix, and not on the way to it. */
  isFolderBelow(folder: Buffer): boolean {
    return folder.length > this.#prefix.length && startsWith(folder, this.#prefix)
  }

  /** Returns whether keys that begin with `base` may be kept. */
  mayBeBelow(base: Buffer): boolean {
    if (!startsWith(base, this.#prefix) && !startsWith(this.#prefix, base)) return false
    if (this.#end !== null && Buffer.compare(base, this.#end) >= 0) return false
    return this.#after === null || Buffer.compare(base, this.#after) > 0 || startsWith(this.#after, base)
  }

  /** Returns the keys in order. */
  sorted(): readonly Buffer[] {
    this.#keys.sort(Buffer.compare)
    if (this.#keys.length > this.#most) {
      this.#keys.length = this.#most
      this.#end = this.#keys.at(-1) ?? null
    }
    return this.#keys
  }
}

const startsWith = (text: Buffer, start: Buffer): boolean => text.length >= start.length && text.compare(start, 0, start.length, 0, start.length) === 0
