/** The arguments and results of shared memory. A shape that is JSON of the API has the names of the API. */

/** Who wrote something: a user id or `key-<id>`, and the agent if there is one. Null when it came into the bucket by other means. */
export interface MemoryAuthor {
  readonly user: string
  /** Id of a verified agent, or in double quotes the unverified label of a plain key. */
  readonly agent?: string
  /** Written next to `agent`: whether the agent authenticated with a token. */
  readonly verified?: boolean
}

/** The scopes of a credential; `agents/` is open to everybody and not listed. */
export interface MemoryPaths {
  readonly scopes: { readonly user: string; readonly workspace?: string; readonly org: string; readonly shared?: readonly string[] }
}

/** One object as it was read. */
export interface MemoryObject {
  readonly key: string
  readonly bytes: Uint8Array
  /** The bytes as UTF-8. Invalid bytes become U+FFFD, so write back `bytes`, not this text, when that matters. */
  readonly text: string
  /** With its quotes, as `ifMatch` takes it. */
  readonly etag: string
  readonly provenance: MemoryProvenance
}

/** The provenance of the object. A field is null when the gateway did not write the object, or when it does not apply. */
export interface MemoryProvenance {
  readonly user: string | null
  /** Id of the agent, from its token, or in double quotes the unverified label of a plain key. */
  readonly agent: string | null
  /** Whether the agent authenticated with a token. */
  readonly verified: boolean | null
  readonly agentName: string | null
  /** The program that wrote, by the name that an MCP client gives itself. */
  readonly client: string | null
  /** ISO time of the write. */
  readonly at: string | null
  readonly sha256: string | null
  /** Who promoted a record. */
  readonly promotedBy: string | null
  /** Keys that a record was made from. */
  readonly sources: readonly string[]
  /** Version that a restore wrote again. */
  readonly restoredFrom: string | null
}

/** A write that was done. */
export interface MemoryWritten {
  readonly ok: true
  readonly key: string
  /** Bytes. */
  readonly size: number
  readonly etag: string
}

/** One line of a list. `modified` is an ISO time, `size` bytes. */
export interface MemoryListed {
  readonly key: string
  readonly size: number
  readonly modified: string
  readonly etag: string
  readonly author: MemoryAuthor | null
}

/** One page of a list. `prefixes` only with a delimiter; a page may be short and still have a next one. */
export interface MemoryListPage {
  readonly keys: readonly MemoryListed[]
  readonly prefixes?: readonly string[]
  readonly next_cursor: string | null
}

/** One line that a search found; lines count from 1. */
export interface MemoryMatch {
  readonly key: string
  readonly line: number
  readonly snippet: string
  readonly etag: string
  readonly author: MemoryAuthor | null
  readonly modified: string
}

/** One page of a search; it may be empty and still have a next one. */
export interface MemorySearchPage {
  readonly matches: readonly MemoryMatch[]
  readonly next_cursor: string | null
  readonly scanned: { readonly objects: number; readonly bytes: number }
}

/** One version of a key. `version` null: it did not come through the gateway and has no version yet. */
export interface MemoryVersion {
  readonly version: string | null
  readonly how: 'put' | 'append' | 'restore' | 'promote' | 'delete'
  /** True for what `read` gives. */
  readonly current: boolean
  readonly size: number
  readonly etag: string | null
  readonly sha256: string | null
  readonly author: MemoryAuthor | null
  readonly modified: string
}

/** One page of a history, newest first. */
export interface MemoryHistoryPage {
  readonly key: string
  readonly versions: readonly MemoryVersion[]
  readonly next_cursor: string | null
}

/** A share; its objects are under `shared/<space>/`. */
export interface MemoryShare {
  readonly id: number
  readonly space: string
  /** User id. */
  readonly owner: number
  /** Who was granted access, without the owner. */
  readonly member_uids: readonly number[]
  readonly role: 'owner' | 'member' | 'manager'
}

/** One page of shares. */
export interface MemorySharesPage {
  readonly shares: readonly MemoryShare[]
  readonly next_cursor: string | null
}

/** Ends the call when the signal fires. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** The condition of a write on the current object. When it does not hold, the write throws BrigadeError `memory_conflict` with status 412. */
export interface MemoryConditions extends Abortable {
  /** An etag, with or without quotes, `sha256:<hex of the content>`, or `*` for any object. */
  readonly ifMatch?: string | undefined
  /** True: only when the object does not exist. */
  readonly createOnly?: boolean | undefined
}

export interface MemoryListOptions extends Abortable {
  /** Keys of one page, at most 1000. */
  readonly limit?: number | undefined
  /** ISO time or day: only keys written since. */
  readonly modifiedSince?: string | undefined
  /** `user:<id>` or `agent:<id>`: only keys whose last write was theirs. */
  readonly author?: string | undefined
}

export interface MemorySearchOptions extends Abortable {
  /** The text is a regular expression of RE2 syntax. */
  readonly regex?: boolean | undefined
  /** Upper and lower case are distinguished. */
  readonly caseSensitive?: boolean | undefined
  /** Only keys with this beginning. */
  readonly prefix?: string | undefined
  /** Lines of one page, at most 200. */
  readonly limit?: number | undefined
}

/** The page after the one whose `next_cursor` this is. */
export interface MemoryPageOptions extends Abortable {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Reads and writes of single objects. */
export interface MemoryObjects {
  /** Returns the object, or an earlier version of it; null when there is none. A key that the caller may not read throws BrigadeError `forbidden`. */
  read(key: string, options?: Abortable & { readonly version?: string | undefined }): Promise<MemoryObject | null>
  /** Text goes as UTF-8. Without conditions the last writer wins. */
  write(key: string, content: string | Uint8Array, conditions?: MemoryConditions): Promise<MemoryWritten>
  /** Deletes an object. A missing object is fine, unless `ifMatch` requires it. `eraseHistory` removes all earlier versions too. */
  remove(key: string, options?: Abortable & { readonly ifMatch?: string | undefined; readonly eraseHistory?: boolean | undefined }): Promise<void>
}
