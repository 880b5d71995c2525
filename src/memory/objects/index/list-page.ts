/** Makes one page of a list: filters, common prefixes, and where the next page begins. */
import { fail } from '../../../platform/errors.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import type { NamedEntry } from '../../access/memory-call.ts'
import { authorInRow } from '../../provenance.ts'
import { afterAllBelow } from '../../stores/object-store.ts'
import type { AuthorFilter } from './author-walk.ts'
import type { ObjectWalk, WalkedObject } from './key-walk.ts'
import { entryBytes } from './list-bytes.ts'
import { cursorText } from './page-cursor.ts'

/** A page ends with the entry that passes this number of bytes of JSON. Decision 0526 says why. */
const pageMaxBytes = 512 * 1024

export interface ListParams {
  /** Maximum number of keys and common prefixes of a page. */
  readonly limit: number
  readonly cursor?: string | undefined
  /** Keys that are equal up to this delimiter after the prefix are shown as one common prefix. */
  readonly delimiter?: string | undefined
  /** Keys for which it returns false are left out. */
  readonly isWanted?: ((found: WalkedObject) => boolean) | undefined
  /** Only objects whose last write came from this author. */
  readonly author?: AuthorFilter | undefined
}

export interface ListPageView {
  readonly keys: NamedEntry[]
  /** Present only with a delimiter. Each prefix ends with the delimiter. */
  readonly prefixes?: string[]
  /** Null on the last page. */
  readonly next_cursor: string | null
}

/** Returns the next page of the walk. Throws ObjectStoreError. */
export async function pageOf(walk: ObjectWalk, prefix: string, { limit, delimiter, isWanted }: ListParams): Promise<ListPageView> {
  const keys: NamedEntry[] = []
  const prefixes: string[] = []
  const view = (next: string | null): ListPageView => ({
    keys,
    ...(delimiter === undefined ? {} : { prefixes }),
    next_cursor: next === null ? null : cursorText('l', next),
  })
  let last: string | null = null
  let bytes = 0
  for (;;) {
    const found = await walk.next()
    if (found === null) return view(walk.stoppedAt)
    if (last !== null && (keys.length + prefixes.length >= limit || bytes >= pageMaxBytes)) return view(last)
    last = found.key
    if (isWanted?.(found) === false) continue
    const cut = delimiter === undefined ? -1 : found.key.indexOf(delimiter, prefix.length)
    if (cut < 0) {
      const entry = entryOf(found)
      keys.push(entry)
      bytes += entryBytes(entry)
      continue
    }
    const common = found.key.slice(0, cut + (delimiter ?? '').length)
    prefixes.push(common)
    bytes += Buffer.byteLength(common)
    last = common + afterAllBelow
    walk.seek(last)
  }
}

export function entryOf({ key, sizeBytes, etag, writtenMs, row, names }: WalkedObject): NamedEntry {
  const author = row === undefined ? null : authorInRow(row)
  return { key, size: sizeBytes, modified: new Date(writtenMs).toISOString(), etag, author, ...(names ?? { author_name: null }) }
}

/** Returns the filters of `modified_since` and `author`. Throws `bad_request`. */
export function filtersOf(modifiedSince: string | undefined, author: string | undefined): Pick<ListParams, 'isWanted' | 'author'> {
  return {
    isWanted: modifiedSince === undefined ? undefined : isSince(modifiedSince),
    author: author === undefined ? undefined : authorFilterOf(author),
  }
}

function isSince(text: string): (found: WalkedObject) => boolean {
  const sinceMs = /^\d{4}-\d\d-\d\d(?:T.+)?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(sinceMs)) throw fail('bad_request', { message: 'Field "modified_since": a time as 2026-01-31T12:00:00Z or a day as 2026-01-31.' })
  return found => found.writtenMs >= sinceMs
}

/**
 * Returns the filter of an author: `user:7`, `user:key-3` for a key without a user, or `agent:9` for a verified agent. A label that a plain key sent
 * matches no author.
 */
function authorFilterOf(text: string): AuthorFilter {
  const [, kind, keyMark, digits = ''] = /^(user|agent):(key-)?(\d{1,10})$/.exec(text) ?? []
  if (kind === undefined || (kind === 'agent' && keyMark !== undefined)) throw fail('bad_request', { message: 'Field "author": user:<id> or agent:<id>.' })
  // A number that cannot be an id matches no author.
  return { kind: keyMark !== undefined ? 'key' : kind === 'agent' ? 'agent' : 'user', id: rowId(digits) ?? 0 }
}
