import { BrigadeError } from '../brigade-error.ts'
import type { MemoryClient } from '../memory-client/memory-client.ts'
import type { MemoryObject } from '../memory-client/memory-client-shapes.ts'
import type {
  MemoryCreateCommand,
  MemoryDeleteCommand,
  MemoryInsertCommand,
  MemoryRenameCommand,
  MemoryReplaceCommand,
  MemoryViewCommand,
} from './memory-tool-commands.ts'
import { MemoryFiles } from './memory-tool-files.ts'
import { defaultMounts, type MemoryMounts, MemoryMountTable, type MemoryPlace } from './memory-tool-mounts.ts'
import { memoryToolText } from './memory-tool-text.ts'
import { changeText, contentText, linesWith, listingText } from './memory-tool-views.ts'

/**
 * The options that decide which folders /memories shows. The default folders are me, team, agents, records/… and shared/<space>. A folder is missing
 * when the credential may not read it.
 */
export interface MemoryToolOptions {
  readonly memory: MemoryClient
  /** One prefix of shared memory that becomes all of /memories, such as `agents/triage/`. */
  readonly root?: string
  /** Paths below /memories and the prefixes that they show, such as `{ plan: 'shared/launch/' }`. */
  readonly mounts?: MemoryMounts
}

/**
 * One handler for each command, in the form that `betaMemoryTool(handlers)` of @anthropic-ai/sdk accepts. Failures are thrown with a message that the
 * model reads.
 */
export interface MemoryToolHandlers {
  view(command: Omit<MemoryViewCommand, 'command'>): Promise<string>
  create(command: Omit<MemoryCreateCommand, 'command'>): Promise<string>
  str_replace(command: Omit<MemoryReplaceCommand, 'command'>): Promise<string>
  insert(command: Omit<MemoryInsertCommand, 'command'>): Promise<string>
  delete(command: Omit<MemoryDeleteCommand, 'command'>): Promise<string>
  rename(command: Omit<MemoryRenameCommand, 'command'>): Promise<string>
}

/** How long the mounts of a credential are cached. New shares appear after this time. */
const mountsFreshMs = 60_000

/** The commands over shared memory. `memoryToolHandlers` describes them. */
export class MemoryCommands implements MemoryToolHandlers {
  readonly #memory: MemoryClient
  readonly #files: MemoryFiles
  readonly #table: () => Promise<MemoryMountTable>

  constructor({ memory, root, mounts }: MemoryToolOptions) {
    this.#memory = memory
    this.#files = new MemoryFiles(memory)
    this.#table = mountSource(memory, root === undefined ? mounts : { '': root })
  }

  async view({ path, view_range: range }: Omit<MemoryViewCommand, 'command'>): Promise<string> {
    const all = await this.#table()
    const place = all.placeOf(path)
    const file = place.key === null || place.isFixed ? null : await this.#memory.read(place.key)
    if (file !== null) return contentText(path, file.text, range)
    const items = await this.#files.list(all, place)
    return items === null ? this.#missing(all, place, memoryToolText.missingPath(path)) : listingText(path, items)
  }

  async create({ path, file_text: content }: Omit<MemoryCreateCommand, 'command'>): Promise<string> {
    const all = await this.#table()
    const place = all.placeOf(path)
    const [found] = await Promise.all([this.#files.look(place), this.#files.checkParents(all, place)])
    if (found.isFile || found.isFolder) throw new Error(memoryToolText.exists(path))
    await unlessTaken(this.#memory.write(mounted(place, all), content, { createOnly: true }), memoryToolText.exists(path))
    return memoryToolText.created(path)
  }

  async str_replace({ path, old_str: old, new_str: replacement }: Omit<MemoryReplaceCommand, 'command'>): Promise<string> {
    let reply = ''
    await this.#rewrite(path, content => {
      const [line, ...more] = linesWith(content, old)
      if (line === undefined) throw new Error(memoryToolText.noMatch(path, old))
      if (more.length > 0) throw new Error(memoryToolText.manyMatches(old, [line, ...more]))
      const at = content.indexOf(old)
      const changed = content.slice(0, at) + replacement + content.slice(at + old.length)
      reply = changeText(changed, line)
      return changed
    })
    return reply
  }

  async insert({ path, insert_line: after, insert_text: text }: Omit<MemoryInsertCommand, 'command'>): Promise<string> {
    await this.#rewrite(path, content => {
      const lines = content.split('\n')
      if (after < 0 || after > lines.length) throw new Error(memoryToolText.badInsertLine(after, lines.length))
      return [...lines.slice(0, after), text.replace(/\n$/, ''), ...lines.slice(after)].join('\n')
    })
    return memoryToolText.inserted(path)
  }

  async delete({ path }: Omit<MemoryDeleteCommand, 'command'>): Promise<string> {
    const all = await this.#table()
    const place = all.placeOf(path)
    if (place.segments.length === 0) throw new Error(memoryToolText.rootDelete)
    if (place.isFixed) throw new Error(`Cannot delete ${path} itself. Delete what is in it.`)
    const found = await this.#files.look(place)
    if (place.key === null || !(found.isFile || found.isFolder)) return this.#missing(all, place, memoryToolText.missing(path))
    await this.#files.remove(place, place.key, found)
    return memoryToolText.deleted(path)
  }

  async rename({ old_path: oldPath, new_path: newPath }: Omit<MemoryRenameCommand, 'command'>): Promise<string> {
    const all = await this.#table()
    const from = all.placeOf(oldPath)
    await this.#files.checkParents(all, from)
    const to = all.placeOf(newPath)
    await this.#files.checkParents(all, to)
    if (from.segments.length === 0) throw new Error(memoryToolText.rootRename)
    if (from.isFixed) throw new Error(`Cannot rename ${oldPath} itself. Rename what is in it.`)
    const taken = await this.#files.look(to)
    if (taken.isFile || taken.isFolder) throw new Error(memoryToolText.destinationExists(newPath))
    const toKey = mounted(to, all)
    this.#files.keepParents(to)
    if (to.resolved.startsWith(`${from.resolved}/`)) throw new Error(memoryToolText.intoItself(from.resolved, to.resolved))
    const found = await this.#files.look(from)
    if (from.key === null || !(found.isFile || found.isFolder)) throw new Error(memoryToolText.missing(oldPath))
    await unlessTaken(this.#files.move(from, from.key, found, to, toKey), memoryToolText.destinationExists(newPath))
    return memoryToolText.renamed(oldPath, newPath)
  }

  /** Rewrites one file. `change` throws to leave the file unchanged. */
  async #rewrite(path: string, change: (content: string) => string): Promise<void> {
    const all = await this.#table()
    const place = all.placeOf(path)
    if (place.isFixed) throw new Error(memoryToolText.notAFile(path))
    await this.#memory.edit(mounted(place, all), async current => {
      // A rewrite as text would change bytes that are not valid text.
      if (current !== null && !isText(current)) throw new Error(memoryToolText.notText(path))
      if (current !== null) return change(current.text)
      if ((await this.#files.look(place)).isFolder) throw new Error(memoryToolText.notAFile(path))
      return this.#missing(all, place, memoryToolText.missingPath(path))
    })
  }

  /** Throws the error for a path without an entry. */
  async #missing(all: MemoryMountTable, place: MemoryPlace, message: string): Promise<never> {
    await this.#files.checkParents(all, place)
    throw new Error(message)
  }
}

function isText({ bytes, text }: MemoryObject): boolean {
  const written = new TextEncoder().encode(text)
  return written.length === bytes.length && written.every((byte, at) => byte === bytes[at])
}

/** Returns the key of a place. Throws for a place that cannot contain files. */
function mounted({ key, resolved }: MemoryPlace, all: MemoryMountTable): string {
  if (key === null) throw new Error(`Nothing can be at ${resolved}. Files are in: ${all.listed}`)
  return key
}

function mountSource(memory: MemoryClient, mounts: MemoryMounts | undefined): () => Promise<MemoryMountTable> {
  if (mounts !== undefined) {
    const fixed = new MemoryMountTable(mounts)
    return async () => fixed
  }
  let known: { readonly table: MemoryMountTable; readonly untilMs: number } | null = null
  return async () => {
    if (known !== null && Date.now() < known.untilMs) return known.table
    const table = new MemoryMountTable(await defaultMounts(memory))
    known = { table, untilMs: Date.now() + mountsFreshMs }
    return table
  }
}

/** Waits for the work. When a condition of a write fails, another writer was first, and this throws an error with `message`. */
async function unlessTaken(work: Promise<unknown>, message: string): Promise<void> {
  try {
    await work
  } catch (failure) {
    if (failure instanceof BrigadeError && failure.code === 'memory_conflict' && failure.status === 412) throw new Error(message, { cause: failure })
    throw failure
  }
}
