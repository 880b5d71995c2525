/** Presents shared memory as files and folders. Shared memory itself has only keys. */
import { BrigadeError } from '../brigade-error.ts'
import type { MemoryClient } from '../memory-client/memory-client.ts'
import { inParallel } from '../memory-client/memory-client-parallel.ts'
import type { MemoryMountTable, MemoryPlace } from './memory-tool-mounts.ts'
import { memoryToolText } from './memory-tool-text.ts'
import type { ListingItem } from './memory-tool-views.ts'

/** The entries at a path. Shared memory allows a file and a folder of the same name. */
export interface Found {
  readonly isFile: boolean
  readonly isFolder: boolean
}

/** Maximum number of concurrent calls to the gateway of one command. */
const parallelMax = 4

/** The folders and files of one tool. Calls throw BrigadeError. */
export class MemoryFiles {
  readonly #memory: MemoryClient
  /** The folders that this tool emptied or created. Shared memory has no empty folders, so the tool remembers them until they are deleted. */
  readonly #emptied = new Set<string>()

  constructor(memory: MemoryClient) {
    this.#memory = memory
  }

  async look(place: MemoryPlace): Promise<Found> {
    if (place.key === null) return { isFile: false, isFolder: place.isFixed }
    const [isFile, isFolder] = await Promise.all([this.#isFile(place), this.#isFolder(place, place.key)])
    return { isFile, isFolder }
  }

  /** Throws an error in the words of a file system when a parent of the path is a file. */
  async checkParents(table: MemoryMountTable, { segments, resolved }: MemoryPlace): Promise<void> {
    const parents = segments.slice(1).map((_part, at) => table.place(segments.slice(0, at + 1)))
    const blocked = await Promise.all(parents.map(async parent => (await this.#isFile(parent)) && !(await this.look(parent)).isFolder))
    if (blocked.includes(true)) throw new Error(memoryToolText.belowAFile(resolved))
  }

  /** Lists two levels of a folder, without hidden entries. Returns null when the folder does not exist. */
  async list(table: MemoryMountTable, place: MemoryPlace): Promise<ListingItem[] | null> {
    const first = await this.#children(table, place)
    if (first.length === 0 && !place.isFixed && !this.#emptied.has(place.resolved)) return null
    const nested = await inParallel(first.filter(isShown), parallelMax, async item =>
      item.sizeBytes === null ? [item, ...(await this.#below(table, place, item.path))] : [item],
    )
    return nested.flat()
  }

  /** Removes the entry at the path, and everything below it. */
  async remove(place: MemoryPlace, key: string, found: Found): Promise<void> {
    const keys = await this.#keysAt(key, found)
    this.#keepParents(place)
    await inParallel(keys, parallelMax, each => this.#memory.remove(each))
    for (const path of this.#emptied) if (isAtOrBelow(path, place.resolved)) this.#emptied.delete(path)
  }

  /** Moves the entry at the path, and everything below it. Throws `memory_conflict` when the destination appears meanwhile. */
  async move(from: MemoryPlace, fromKey: string, found: Found, to: MemoryPlace, toKey: string): Promise<void> {
    const keys = await this.#keysAt(fromKey, found)
    this.#keepParents(from)
    await inParallel(keys, parallelMax, key => moveObject(this.#memory, key, toKey + key.slice(fromKey.length)))
    for (const path of [...this.#emptied])
      if (isAtOrBelow(path, from.resolved)) {
        this.#emptied.delete(path)
        this.#emptied.add(to.resolved + path.slice(from.resolved.length))
      }
  }

  /** Makes the folders above a path exist from now on, even when they contain no files. */
  keepParents(place: MemoryPlace): void {
    this.#keepParents(place)
  }

  #keepParents({ segments }: MemoryPlace): void {
    for (let depth = 1; depth < segments.length; depth++) this.#emptied.add(['/memories', ...segments.slice(0, depth)].join('/'))
  }

  async #isFile({ key, isFixed }: MemoryPlace): Promise<boolean> {
    if (key === null || isFixed) return false
    // The key itself sorts before all longer keys with this beginning.
    const { keys } = await this.#memory.listPage(key, { limit: 1 })
    return keys[0]?.key === key
  }

  async #isFolder({ isFixed, resolved }: MemoryPlace, key: string): Promise<boolean> {
    if (isFixed || this.#emptied.has(resolved)) return true
    for await (const _first of this.#memory.list(`${key}/`, { limit: 1 })) return true
    return false
  }

  async #keysAt(key: string, { isFile, isFolder }: Found): Promise<string[]> {
    const keys = isFile ? [key] : []
    if (isFolder) for await (const found of this.#memory.list(`${key}/`)) keys.push(found.key)
    return keys
  }

  async #below(table: MemoryMountTable, { segments }: MemoryPlace, name: string): Promise<ListingItem[]> {
    try {
      const items = await this.#children(table, table.place([...segments, name]))
      return items.filter(isShown).map(item => ({ ...item, path: `${name}/${item.path}` }))
    } catch (failure) {
      // A share may be revoked after the mounts were made. The share then appears empty, and the listing goes on.
      if (failure instanceof BrigadeError && failure.code === 'forbidden') return []
      throw failure
    }
  }

  /** Returns the entries of one level by name, including hidden entries. */
  async #children(table: MemoryMountTable, { segments, resolved, key }: MemoryPlace): Promise<ListingItem[]> {
    const files: ListingItem[] = []
    const folders = new Set(table.namesIn(segments))
    for (const path of this.#emptied) if (path.slice(0, path.lastIndexOf('/')) === resolved) folders.add(path.slice(resolved.length + 1))
    if (key !== null) {
      let cursor: string | undefined
      do {
        const page = await this.#memory.listPage(`${key}/`, { delimiter: '/', cursor })
        for (const found of page.keys) files.push({ path: found.key.slice(key.length + 1), sizeBytes: found.size })
        for (const prefix of page.prefixes ?? []) folders.add(prefix.slice(key.length + 1, -1))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    }
    return [...files, ...[...folders].map(path => ({ path, sizeBytes: null }))].sort((one, other) =>
      one.path < other.path ? -1 : one.path > other.path ? 1 : 0,
    )
  }
}

function isShown({ path }: ListingItem): boolean {
  return !path.startsWith('.') && path !== 'node_modules'
}

function isAtOrBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

const attemptsMax = 10

/**
 * Moves one object to a free key. Changes that others make during the move are copied too. The old key is deleted only when the new key has the same
 * content, so nothing is lost. Throws BrigadeError, and `memory_conflict` with status 412 when the new key is taken.
 */
export async function moveObject(memory: MemoryClient, from: string, to: string): Promise<void> {
  let copyEtag: string | null = null
  for (let attempt = 1; ; attempt++) {
    const current = await memory.read(from)
    // Another writer deleted the object. If it was already copied, the move is complete. Otherwise there is nothing to move.
    if (current === null) return
    copyEtag = (await memory.write(to, current.bytes, copyEtag === null ? { createOnly: true } : { ifMatch: copyEtag })).etag
    try {
      await memory.remove(from, { ifMatch: current.etag })
      return
    } catch (failure) {
      if (failure instanceof BrigadeError && failure.status === 412 && attempt < attemptsMax) continue
      // The old object cannot be deleted, for example because it is a record, so the copy is deleted. After a status of 500 or more, or without a
      // reply, the deletion may have happened, so the copy is kept.
      if (failure instanceof BrigadeError && failure.status < 500) await memory.remove(to, { ifMatch: copyEtag }).catch(() => undefined)
      throw failure
    }
  }
}
