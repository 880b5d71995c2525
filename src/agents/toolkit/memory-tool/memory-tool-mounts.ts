/** Maps the paths below /memories, which the model's memory tool uses, to prefixes of shared memory. */
import type { MemoryClient } from '../memory-client/memory-client.ts'
import { memoryToolText } from './memory-tool-text.ts'

/** Paths below /memories, without slashes at the ends, and the prefix of shared memory that each path shows. The path '' is /memories itself. */
export type MemoryMounts = Readonly<Record<string, string>>

interface Mount {
  readonly at: readonly string[]
  /** The prefix, with a slash at its end. */
  readonly prefix: string
}

/** The place that a path of a command names. */
export interface MemoryPlace {
  /** The segments below /memories. The list is empty for /memories itself. */
  readonly segments: readonly string[]
  /** The path /memories/… in its shortest form. */
  readonly resolved: string
  /** The key of shared memory, without a slash at the end. Null when no mount covers the path. */
  readonly key: string | null
  /** True for mounts and the folders above them. They exist with or without entries, and cannot be removed. */
  readonly isFixed: boolean
}

/** The mounts in force. */
export class MemoryMountTable {
  readonly #mounts: readonly Mount[]

  constructor(mounts: MemoryMounts) {
    this.#mounts = Object.entries(mounts)
      .map(([path, prefix]) => ({
        at: path
          .normalize('NFC')
          .replace(/^\/memories(?=\/|$)/, '')
          .split('/')
          .filter(part => part !== ''),
        prefix: memoryPrefix(prefix),
      }))
      .sort((one, other) => other.at.length - one.at.length)
  }

  /** Returns the place of a path of a command. Throws for a path that is not below /memories. */
  placeOf(path: string): MemoryPlace {
    return this.place(segmentsOf(path))
  }

  place(segments: readonly string[]): MemoryPlace {
    const mount = this.#mounts.find(({ at }) => startsWith(segments, at))
    const rest = segments.slice(mount?.at.length ?? 0)
    return {
      segments,
      resolved: ['/memories', ...segments].join('/'),
      key: mount === undefined ? null : (mount.prefix + rest.join('/')).replace(/\/$/, ''),
      isFixed: segments.length === 0 || this.#mounts.some(({ at }) => startsWith(at, segments)),
    }
  }

  /** Returns the names that mounts add to a folder. */
  namesIn(segments: readonly string[]): string[] {
    return this.#mounts.flatMap(({ at }) => (at.length > segments.length && startsWith(at, segments) ? (at[segments.length] ?? []) : []))
  }

  /** The places where files can be, for messages. */
  get listed(): string {
    return this.#mounts
      .map(({ at }) => ['/memories', ...at].join('/'))
      .sort()
      .join(', ')
  }
}

/**
 * Returns a prefix of shared memory with one slash at its end. Throws TypeError for an empty prefix, because the tool may not use the whole of shared
 * memory.
 */
export function memoryPrefix(text: string): string {
  const prefix = text.replace(/^\/+|\/+$/g, '').normalize('NFC')
  if (prefix === '') throw new TypeError('Name a prefix of shared memory, such as agents/triage/.')
  return `${prefix}/`
}

/**
 * Returns the default mounts of a credential: its own memory, the journal of its team, the memory that all agents share, its shares, and the records.
 * Records are read-only here, because only promotion writes them.
 */
export async function defaultMounts(memory: MemoryClient): Promise<MemoryMounts> {
  const { scopes } = await memory.paths()
  return {
    me: scopes.user,
    agents: 'agents/',
    'records/org': `${scopes.org}records/`,
    ...(scopes.workspace === undefined ? {} : { team: `${scopes.workspace}journal/`, 'records/team': `${scopes.workspace}records/` }),
    ...Object.fromEntries((scopes.shared ?? []).map(prefix => [prefix.replace(/\/$/, ''), prefix])),
  }
}

/** Returns the segments of a path below /memories, with `.` and `..` resolved. Throws for a path outside /memories. */
function segmentsOf(path: string): string[] {
  if (!path.startsWith('/memories')) throw new Error(memoryToolText.badStart(path))
  const segments: string[] = []
  // Whether the path is above /memories at this point. A path such as /memories/../memories/a leaves the folder and enters it again by name.
  let above = false
  // Keys are in Unicode normal form C. A name in another form means the same file.
  for (const part of path.slice('/memories'.length).normalize('NFC').split('/')) {
    if (part === '' || part === '.') continue
    if (above && part !== 'memories') throw new Error(memoryToolText.escapes(path))
    if (above) above = false
    else if (part !== '..') segments.push(part)
    else if (segments.pop() === undefined) above = true
  }
  if (above) throw new Error(memoryToolText.escapes(path))
  return segments
}

function startsWith(segments: readonly string[], beginning: readonly string[]): boolean {
  return beginning.length <= segments.length && beginning.every((part, at) => part === segments[at])
}
