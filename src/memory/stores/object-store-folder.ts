/**
 * An object store in a folder, which is the default without any setup. An object is a data file and a sidecar that names it. A write takes effect when its
 * sidecar is renamed over the old one, so a reader sees either the old or the new object, and a crash loses neither. Conditional writes work within one
 * process only. A folder store is meant for one process.
 */
import { createHash } from 'node:crypto'
import { copyFile, link, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { KeyQueue } from '../access/key-queue.ts'
import { codeOf, guarded } from './folder-failures.ts'
import { firstKeys } from './folder-list.ts'
import { placeOf, sidecarEnd } from './folder-names.ts'
import { type DiskSpace, diskSpaceOf, FolderRoom } from './folder-room.ts'
import {
  afterAllBelow,
  type CopyOptions,
  type DeleteOptions,
  type GetOptions,
  type ListedObject,
  type ListOptions,
  type ListPage,
  listPageMax,
  type ObjectHead,
  type ObjectStore,
  ObjectStoreError,
  type PutOptions,
  type StoredObject,
} from './object-store.ts'

export interface FolderStoreOptions {
  readonly root: string
  readonly clock: Clock
  readonly ids: Ids
  /** Returns the space of the disk that contains a folder. The default asks the file system. */
  readonly diskSpaceOf?: (folder: string) => Promise<DiskSpace>
}

interface Sidecar {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly metadata: Readonly<Record<string, string>>
  readonly contentType: string
  /** Name of the data file next to the sidecar. */
  readonly data: string
}

const isFolder = (key: string): boolean => key.endsWith('/')

/** Number of sidecars that a list reads concurrently. */
const readsAtOnce = 16
/** Maximum number of tries of a reader when other writers replace the files each time. */
const triesMax = 20

export class FolderStore implements ObjectStore {
  readonly #root: string
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #queue: KeyQueue
  readonly #room: FolderRoom

  constructor(options: FolderStoreOptions) {
    this.#root = options.root
    this.#clock = options.clock
    this.#ids = options.ids
    this.#queue = new KeyQueue(options.clock)
    const spaceOf = options.diskSpaceOf ?? diskSpaceOf
    this.#room = new FolderRoom(options.clock, () => mkdir(this.#root, { recursive: true, mode: 0o700 }).then(() => spaceOf(this.#root)))
  }

  async get(key: string, options: GetOptions): Promise<StoredObject> {
    for (let tries = 0; tries < triesMax; tries++) {
      const found = await this.#sidecar(key)
      if (found === null) throw new ObjectStoreError('not-found', 'no such object')
      if (found.sizeBytes > options.sizeBytesMax) throw new ObjectStoreError('too-large', `the object has ${found.sizeBytes} bytes`)
      const bytes = await guarded(() => readOrNull(join(this.#directory(key), found.data)))
      // A data file disappears only after a newer sidecar has replaced its sidecar, so the sidecar is read again.
      if (bytes !== null) return { ...headOf(found), bytes }
    }
    throw new ObjectStoreError('unavailable', 'the object changed too often while it was read')
  }

  async head(key: string): Promise<ObjectHead | null> {
    const found = await this.#sidecar(key)
    return found === null ? null : headOf(found)
  }

  put(key: string, bytes: Buffer, options: PutOptions = {}): Promise<{ etag: string }> {
    return this.#queue.run(key, async () => {
      const before = await this.#sidecar(key)
      if (options.ifNoneMatch !== undefined && before !== null) throw new ObjectStoreError('precondition-failed', 'there is an object of that key')
      if (options.ifMatch !== undefined && before?.etag !== options.ifMatch) throw new ObjectStoreError('precondition-failed', 'the object has another etag')
      return guarded(async () => {
        await this.#room.check()
        return this.#replace(key, bytes, options, before)
      })
    })
  }

  /** Copies an object. The copy shares the bytes on disk when the file system supports it, because data files are never changed. */
  async copy(from: string, to: string, options: CopyOptions = {}): Promise<{ etag: string }> {
    for (let tries = 0; tries < triesMax; tries++) {
      const found = await this.#sidecar(from)
      if (found === null) throw new ObjectStoreError('not-found', 'no such object')
      if (options.ifMatch !== undefined && found.etag !== options.ifMatch) throw new ObjectStoreError('precondition-failed', 'the object has another etag')
      const source = join(this.#directory(from), found.data)
      const data = `${placeOf(to).stem}${this.#ids.uuidv7(this.#clock.nowMs())}.bin`
      const isDone = await this.#queue.run(to, async () => {
        const before = await this.#sidecar(to)
        return guarded(async () => {
          await this.#room.check()
          await mkdir(this.#directory(to), { recursive: true, mode: 0o700 })
          if (!(await linkOrCopy(source, join(this.#directory(to), data)))) return false
          await this.#place({ ...found, key: to, data, modifiedMs: this.#clock.nowMs() }, before)
          return true
        })
      })
      // The source was replaced meanwhile, so it is read again.
      if (isDone) return { etag: found.etag }
    }
    throw new ObjectStoreError('unavailable', 'the object changed too often while it was copied')
  }

  delete(key: string, options: DeleteOptions = {}): Promise<void> {
    return this.#queue.run(key, async () => {
      const before = await this.#sidecar(key)
      if (options.ifMatch !== undefined && before?.etag !== options.ifMatch) throw new ObjectStoreError('precondition-failed', 'the object has another etag')
      if (before === null) return
      await guarded(async () => {
        await rm(this.#sidecarPath(key), { force: true })
        await rm(join(this.#directory(key), before.data), { force: true })
      })
      await this.#removeEmpty(key)
    })
  }

  async list(options: ListOptions): Promise<ListPage> {
    const limit = Math.min(options.limit ?? listPageMax, listPageMax)
    const first = await firstKeys(this.#root, { ...options, limit }, readKey)
    const keys = first.keys.filter(key => !isFolder(key))
    const objects: ListedObject[] = []
    for (let at = 0; at < keys.length; at += readsAtOnce) {
      options.signal?.throwIfAborted()
      for (const found of await Promise.all(keys.slice(at, at + readsAtOnce).map(key => this.#sidecar(key)))) {
        // An object may have been deleted since its name was read.
        if (found !== null) objects.push({ key: found.key, etag: found.etag, sizeBytes: found.sizeBytes, modifiedMs: found.modifiedMs })
      }
    }
    const next = first.next !== null && isFolder(first.next) ? first.next + afterAllBelow : first.next
    return options.byFolder === true ? { objects, folders: first.keys.filter(isFolder), next } : { objects, next }
  }

  close(): void {}

  #directory(key: string): string {
    return join(this.#root, ...placeOf(key).directories)
  }

  #sidecarPath(key: string): string {
    return join(this.#directory(key), `${placeOf(key).stem}.json`)
  }

  #sidecar(key: string): Promise<Sidecar | null> {
    return guarded(() => readSidecar(this.#sidecarPath(key)))
  }

  async #replace(key: string, bytes: Buffer, options: PutOptions, before: Sidecar | null): Promise<{ etag: string }> {
    const nowMs = this.#clock.nowMs()
    const etag = `"${createHash('sha256').update(bytes).digest('hex')}"`
    const directory = this.#directory(key)
    const data = `${placeOf(key).stem}${this.#ids.uuidv7(nowMs)}.bin`
    const sidecar: Sidecar = {
      key,
      etag,
      sizeBytes: bytes.length,
      modifiedMs: nowMs,
      metadata: options.metadata ?? {},
      contentType: options.contentType ?? 'application/octet-stream',
      data,
    }
    for (let tries = 1; ; tries++) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      try {
        await writeDurably(join(directory, data), bytes)
        break
      } catch (error) {
        // A deletion of another key removed the new directory, because it was still empty.
        if (tries >= triesMax || codeOf(error) !== 'ENOENT') throw error
      }
    }
    await this.#place(sidecar, before)
    return { etag }
  }

  /** Removes the directories of a key that are empty now. The first one, which all keys of an organisation share, stays. */
  async #removeEmpty(key: string): Promise<void> {
    const { directories } = placeOf(key)
    for (let depth = directories.length; depth > 1; depth--) {
      try {
        await rmdir(join(this.#root, ...directories.slice(0, depth)))
      } catch (error) {
        // A directory with entries stays, and one that cannot be removed does no harm to the deletion.
        if (codeOf(error) !== 'ENOENT') return
      }
    }
  }

  /** Replaces the object's sidecar, so that the object has the new data file, and removes the old data file. */
  async #place(sidecar: Sidecar, before: Sidecar | null): Promise<void> {
    const directory = this.#directory(sidecar.key)
    const fresh = join(directory, `${sidecar.data}.new`)
    await writeDurably(fresh, Buffer.from(JSON.stringify(sidecar)))
    await this.#renameOver(fresh, this.#sidecarPath(sidecar.key))
    if (before !== null) await rm(join(directory, before.data), { force: true })
  }

  /**
   * Renames a file over another. On Windows a rename fails for a moment while another process (a virus scanner, a reader) has the target open, so it
   * is tried again.
   */
  async #renameOver(from: string, to: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await rename(from, to)
      } catch (error) {
        if (tries >= 6 || !['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error))) throw error
        await this.#clock.sleep(10 * tries)
      }
    }
  }
}

/** An object of a folder store as its files, for a copy of the whole folder. */
export interface FolderObject {
  readonly key: string
  readonly etag: string
  readonly metadata: Readonly<Record<string, string>>
  readonly contentType: string
  bytes(): Promise<Buffer>
}

/** Returns every object below the root of a folder store that is not in use. Each folder is read once. Throws when an object has no bytes. */
export async function* folderObjects(root: string): AsyncGenerator<FolderObject> {
  for (const path of (await sidecarPathsBelow(root)).sort()) {
    const found = await readSidecar(path)
    if (found === null) continue
    const { key, etag, metadata, contentType, data } = found
    yield { key, etag, metadata, contentType, bytes: () => readFile(join(dirname(path), data)) }
  }
}

async function writeDurably(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes a hard link, or a copy on a file system without links. Returns false when the source is gone. */
async function linkOrCopy(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') throw error
      return copyFile(from, to)
    })
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

async function readSidecar(path: string): Promise<Sidecar | null> {
  const text = await readOrNull(path)
  return text === null ? null : (JSON.parse(text.toString('utf8')) as Sidecar)
}

async function readOrNull(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null
    throw error
  }
}

/** Returns the key of the object that has this sidecar. Returns null when it is gone. */
const readKey = async (path: string): Promise<string | null> => (await guarded(() => readSidecar(path)))?.key ?? null

async function sidecarPathsBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  })
  return entries.filter(entry => entry.isFile() && entry.name.endsWith(sidecarEnd)).map(entry => join(entry.parentPath, entry.name))
}

function headOf({ etag, sizeBytes, modifiedMs, metadata }: Sidecar): ObjectHead {
  return { etag, sizeBytes, modifiedMs, metadata }
}
