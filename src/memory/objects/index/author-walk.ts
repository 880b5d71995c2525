/** Walks over the objects of one author that a caller may read, in bytewise order of their keys. Decision 0582 says why it reads the index. */
import type { Db } from '../../../platform/db/db.ts'
import type { AuthorNames } from '../../access/author-names.ts'
import type { ConfiguredStore } from '../../access/memory-call.ts'
import { isExpired } from '../../access/path-rules.ts'
import { afterAllBelow, compareKeys } from '../../stores/object-store.ts'
import { type SizedRow, writtenByAuthor } from './author-queries.ts'
import type { ObjectWalk, WalkedObject } from './key-walk.ts'

/** Maximum number of rows of one read after the first. */
const rowsMax = 1_000

/** An author that a list can be filtered by: an agent, a user, or a key without a user. */
export interface AuthorFilter {
  readonly kind: keyof typeof writtenByAuthor
  readonly id: number
}

export interface AuthorWalkOptions {
  readonly db: Db
  readonly configured: ConfiguredStore
  readonly author: AuthorFilter
  readonly nowMs: number
  /** No prefix is the beginning of another. */
  readonly prefixes: readonly string[]
  /** The walk visits only keys after this one. */
  readonly after: string | null
  /** Number of rows of the first read, the keys of a page and one more. Each further read has twice as many as the one before. */
  readonly pageSize: number
  /** The walk stops when it has read this many rows. */
  readonly lookMax: number
  readonly names: AuthorNames
  readonly signal: AbortSignal
}

/** Iterates over the rows of the index without expired journal entries. */
export class AuthorWalk implements ObjectWalk {
  readonly #options: AuthorWalkOptions
  readonly #prefixes: readonly string[]
  #rows: SizedRow[] = []
  #isLastRead = false
  #after: string | null
  #pageSize: number
  #looked = 0
  stoppedAt: string | null = null

  constructor(options: AuthorWalkOptions) {
    this.#options = options
    this.#prefixes = [...options.prefixes].sort(compareKeys)
    this.#after = options.after
    this.#pageSize = options.pageSize
  }

  async next(): Promise<WalkedObject | null> {
    const { configured, nowMs, lookMax } = this.#options
    for (;;) {
      const row = this.#rows.shift()
      if (row === undefined) {
        if (this.#isLastRead) return null
        if (this.#looked >= lookMax) {
          this.stoppedAt = this.#after
          return null
        }
        await this.#read()
        continue
      }
      if (this.#after !== null && compareKeys(row.key, this.#after) <= 0) continue
      this.#after = row.key
      const writtenMs = row.writtenAt.getTime()
      if (!isExpired(row.key, writtenMs, configured.row.journalTtlDays, nowMs))
        return { key: row.key, etag: row.etag, sizeBytes: Number(row.sizeBytes), writtenMs, row, names: this.#options.names.of(row) }
    }
  }

  seek(after: string): void {
    this.#after = after
  }

  async #read(): Promise<void> {
    const { db, configured, author, names, lookMax, signal } = this.#options
    signal.throwIfAborted()
    const after = this.#after ?? ''
    const left = this.#prefixes.filter(prefix => compareKeys(prefix + afterAllBelow, after) > 0)
    const limit = Math.min(this.#pageSize, lookMax - this.#looked)
    const ends = left.map(prefix => prefix + afterAllBelow)
    this.#rows = await db.many(writtenByAuthor[author.kind], configured.row.orgId, author.id, left, ends, after, limit)
    this.#isLastRead = this.#rows.length < limit
    this.#looked += this.#rows.length
    this.#pageSize = Math.min(2 * this.#pageSize, rowsMax)
    await names.learn(this.#rows)
  }
}
