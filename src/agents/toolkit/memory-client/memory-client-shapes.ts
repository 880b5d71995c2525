/** The arguments and results of shared memory. Shapes that are JSON of the API have the field names of the API. */

/** The author: a user id or `key-<id>`, and the agent if there is one. Null when the gateway did not write the object. */
export interface MemoryAuthor {
  readonly user: string
  /** The id of a verified agent, or the unverified label of a plain key in double quotes. */
  readonly agent?: string
  /** Whether the agent authenticated with a token. It is present only with `agent`. */
  readonly verified?: boolean
}

/** The scopes of a credential. `agents/` is open to every member and is not listed. */
export interface MemoryPaths {
  readonly scopes: { readonly user: string; readonly workspace?: string; readonly org: string; readonly shared?: readonly string[] }
}

/** One object as it was read. */
export interface MemoryObject {
  readonly key: string
  readonly bytes: Uint8Array
  /** The bytes as UTF-8. Invalid bytes become U+FFFD, so a program that must keep such bytes writes back `bytes` and not this text. */
  readonly text: string
  /** The etag with its quotes, as `ifMatch` accepts it. */
  readonly etag: string
  readonly provenance: MemoryProvenance
}

/** The provenance of an object. A field is null when the gateway did not write the object, or when the field does not apply. */
export interface MemoryProvenance {
  readonly user: string | null
  /** The id of the agent from its token, or the unverified label of a plain key in double quotes. */
  readonly agent: string | null
  /** Whether the agent authenticated with a token. */
  readonly verified: boolean | null
  readonly agentName: string | null
  /** The program that wrote the object, by the name that an MCP client gives itself. */
  readonly client: string | null
  /** The time of the write, in ISO format. */
  readonly at: string | null
  readonly sha256: string | null
  /** The user who promoted a record. */
  readonly promotedBy: string | null
  /** The keys that a record was made from. */
  readonly sources: readonly string[]
  /** The version that a restore wrote again. */
  readonly restoredFrom: string | null
}

/** The result of a write. */
export interface MemoryWritten {
  readonly ok: true
  readonly key: string
  /** Size in bytes. */
  readonly size: number
  readonly etag: string
}

/** One line of a list. `modified` is an ISO time, and `size` is in bytes. */
export interface MemoryListed {
  readonly key: string
  readonly size: number
  readonly modified: string
  readonly etag: string
  readonly author: MemoryAuthor | null
  /** The name of the member, or of the key for a key without a user. Null when the gateway did not write the object. */
  readonly author_name?: string | null
  /** The name of a verified agent. */
  readonly agent_name?: string
}

/** One page of a list. `prefixes` is present only with a delimiter. A short page may have a next page. */
export interface MemoryListPage {
  readonly keys: readonly MemoryListed[]
  readonly prefixes?: readonly string[]
  readonly next_cursor: string | null
}

/** One line that a search found. Lines count from 1. */
export interface MemoryMatch {
  readonly key: string
  readonly line: number
  readonly snippet: string
  readonly etag: string
  readonly author: MemoryAuthor | null
  readonly modified: string
}

/** One page of a search. An empty page may have a next page. */
export interface MemorySearchPage {
  readonly matches: readonly MemoryMatch[]
  readonly next_cursor: string | null
  readonly scanned: { readonly objects: number; readonly bytes: number }
}

/** One version of a key. `version` is null when the gateway did not write the content and has not recorded a version of it yet. */
export interface MemoryVersion {
  readonly version: string | null
  readonly how: 'put' | 'append' | 'restore' | 'promote' | 'delete'
  /** True for the version that `read` returns. */
  readonly current: boolean
  readonly size: number
  readonly etag: string | null
  readonly sha256: string | null
  readonly author: MemoryAuthor | null
  /** The name of the member, or of the key for a key without a user. Null when the gateway did not write the object. */
  readonly author_name?: string | null
  /** The name of a verified agent. */
  readonly agent_name?: string
  readonly modified: string
}

/** One page of a history, newest first. */
export interface MemoryHistoryPage {
  readonly key: string
  readonly versions: readonly MemoryVersion[]
  readonly next_cursor: string | null
}

/** A share. Its objects are under `shared/<space>/`. */
export interface MemoryShare {
  readonly id: number
  readonly space: string
  /** The owner's user id. */
  readonly owner: number
  /** The users who were granted access, without the owner. */
  readonly member_uids: readonly number[]
  readonly role: 'owner' | 'member' | 'manager'
}

/** One page of shares. */
export interface MemorySharesPage {
  readonly shares: readonly MemoryShare[]
  readonly next_cursor: string | null
}

/** Options of a call that a signal can end. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** The condition of a write on the current object. When it does not hold, the write throws BrigadeError `memory_conflict` with status 412. */
export interface MemoryConditions extends Abortable {
  /** An etag, with or without quotes, `sha256:<hex of the content>`, or `*` for any object. */
  readonly ifMatch?: string | undefined
  /** When true, the write succeeds only if the object does not exist. */
  readonly createOnly?: boolean | undefined
}

export interface MemoryListOptions extends Abortable {
  /** Keys of one page, at most 1000. */
  readonly limit?: number | undefined
  /** An ISO time or day. The list contains only keys written since then. */
  readonly modifiedSince?: string | undefined
  /** `user:<id>` or `agent:<id>`. The list contains only keys whose last write came from this author. */
  readonly author?: string | undefined
}

export interface MemorySearchOptions extends Abortable {
  /** When true, the text is a regular expression in RE2 syntax. */
  readonly regex?: boolean | undefined
  /** When true, the search distinguishes upper and lower case. */
  readonly caseSensitive?: boolean | undefined
  /** The search covers only keys with this beginning. */
  readonly prefix?: string | undefined
  /** Maximum number of lines of one page, at most 200. */
  readonly limit?: number | undefined
}

/** Options of one page. `cursor` is the `next_cursor` of the previous page. */
export interface MemoryPageOptions extends Abortable {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Reads and writes of single objects. */
export interface MemoryObjects {
  /**
   * Returns the object, or an earlier version of it. Returns null when there is none. Throws BrigadeError `forbidden` for a key that the caller may
   * not read.
   */
  read(key: string, options?: Abortable & { readonly version?: string | undefined }): Promise<MemoryObject | null>
  /** Writes an object. Text is sent as UTF-8. Without conditions the last writer wins. */
  write(key: string, content: string | Uint8Array, conditions?: MemoryConditions): Promise<MemoryWritten>
  /** Deletes an object. Deleting a missing object is an error only with `ifMatch`. `eraseHistory` removes all earlier versions too. */
  remove(key: string, options?: Abortable & { readonly ifMatch?: string | undefined; readonly eraseHistory?: boolean | undefined }): Promise<void>
}
