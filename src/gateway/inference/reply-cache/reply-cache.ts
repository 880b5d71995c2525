import { createHmac } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { deriveKey, type Sealer } from '../../../platform/security/secrets.ts'
import { windowClosed } from '../content-log/content-log.ts'
import { ContentRoom } from '../content-log/content-room.ts'
import { deleteExpiredReplies, deleteRepliesBefore, findReply, insertReply } from './reply-cache-queries.ts'

export interface ReplyCacheDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly masterKey: Buffer
  readonly controlLog: Pick<ControlLog, 'on' | 'onGap'>
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: (orgId: number) => string
}

/** A reply as it is kept: its headers that do not come from the call itself, and the bytes that the client got. */
export interface StoredReply {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A reply that was found. */
export interface FoundReply extends StoredReply {
  readonly ageSeconds: number
  /** What the call was worth that made the reply. */
  readonly valueUinr: bigint
  readonly residency: string
  readonly provider: string
}

/** A reply to keep. */
export interface NewReply extends StoredReply {
  readonly ttlSeconds: number
  readonly valueUinr: bigint
  readonly residency: string
  readonly provider: string
}

/** The longest reply that is kept, in bytes. A stream counts with its events. */
export const replyMaxBytes = 1024 * 1024
/** The room of one organisation, in bytes of sealed replies. The oldest make room for new ones. */
export const orgRoomBytes = 64 * 1024 * 1024
/** What a short reply counts for, so that the number of replies is bounded too. */
const entryBytesLeast = 16 * 1024
/** The interval between deletions of expired replies. Reads ignore them before that. */
export const replyCacheSweepMs = 10 * 60_000
const deletedAtOnce = 1000
/** A time after every row. */
const farMs = Date.UTC(9999, 0)
const dayMs = 24 * 3600_000

/**
 * Keeps replies for callers who ask for it. A reply is found only by exactly the same request in the same scope: the name of a row is an HMAC under a
 * key of the organisation, so it says nothing about the request. Replies are content, so they are sealed, and kept only while the organisation has a
 * retention window. A failure of the database means that nothing is found and nothing is kept. Decision 0878 gives the reasons.
 */
export class ReplyCache {
  readonly #deps: ReplyCacheDeps
  /** The memory for streams that are collected. */
  readonly #room = new ContentRoom()
  /** How many windows were closed. A reply that was under way at a closing is not kept, also when a new window is open by then. */
  closings = 0

  constructor(deps: ReplyCacheDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind === windowClosed) this.closings++
    })
    // News may be lost in a gap.
    deps.controlLog.onGap(() => {
      this.closings++
    })
  }

  /** Returns the name of the row for these parts of a request. Each part is bound by its length. */
  macOf(orgId: number, parts: readonly (string | Buffer)[]): Buffer {
    const mac = createHmac('sha256', deriveKey(this.#deps.masterKey, `reply-cache:${orgId}`))
    for (const part of parts) mac.update(`${Buffer.byteLength(part)}\n`).update(part)
    return mac.digest()
  }

  /** Returns a reply that is at most `ttlSeconds` old, or null. */
  async find(orgId: number, mac: Buffer, ttlSeconds: number): Promise<FoundReply | null> {
    const { db, clock, log, sealer } = this.#deps
    const nowMs = clock.nowMs()
    try {
      const row = await db.maybe(findReply, orgId, mac, new Date(nowMs), new Date(nowMs - ttlSeconds * 1000))
      if (row === null) return null
      const { sealed, at, ...facts } = row
      const ageSeconds = Math.max(0, Math.floor((nowMs - at.getTime()) / 1000))
      return { ...facts, ageSeconds, ...(JSON.parse(sealer.open(sealed, replyOwner(orgId, mac))) as StoredReply) }
    } catch (error) {
      log.warn('reply_cache_read_failed', { orgId, error })
      return null
    }
  }

  /** Keeps a reply. Returns false when it was not kept. Never throws. */
  async keep(orgId: number, mac: Buffer, { headers, body, ttlSeconds, ...facts }: NewReply): Promise<boolean> {
    const { db, clock, log, sealer } = this.#deps
    const nowMs = clock.nowMs()
    const sealed = sealer.seal(JSON.stringify({ headers, body } satisfies StoredReply), replyOwner(orgId, mac))
    const bytes = Math.max(entryBytesLeast, sealed.length)
    const { valueUinr, residency, provider } = facts
    const expiresAt = new Date(nowMs + ttlSeconds * 1000)
    try {
      return (await db.exec(insertReply, orgId, mac, new Date(nowMs), expiresAt, bytes, valueUinr, residency, provider, sealed, orgRoomBytes)) > 0
    } catch (error) {
      log.warn('reply_cache_write_failed', { orgId, error })
      return false
    }
  }

  /** Takes memory for a stream that is collected. Returns false when the process has no room for it. */
  take(orgId: number, bytes: number): boolean {
    return this.#room.take((this.#deps.founderOf ?? String)(orgId), bytes)
  }

  /** Gives this memory back. */
  give(orgId: number, bytes: number): void {
    this.#room.give((this.#deps.founderOf ?? String)(orgId), bytes)
  }

  /** Deletes immediately what a window of `days` days no longer covers. With 0 days it deletes all. */
  async shrink(orgId: number, days: number): Promise<void> {
    const before = new Date(days === 0 ? farMs : this.#deps.clock.nowMs() - days * dayMs)
    while ((await this.#deps.db.exec(deleteRepliesBefore, orgId, before, deletedAtOnce)) === deletedAtOnce);
  }

  /** Deletes expired replies of all organisations. */
  async expire(signal?: AbortSignal): Promise<void> {
    const now = new Date(this.#deps.clock.nowMs())
    while (!signal?.aborted && (await this.#deps.db.exec(deleteExpiredReplies, now, deletedAtOnce)) === deletedAtOnce);
  }
}

/** Returns the name that binds a sealed reply to its row. */
export const replyOwner = (orgId: number, mac: Buffer): string => `reply:${orgId}:${mac.toString('hex')}`
