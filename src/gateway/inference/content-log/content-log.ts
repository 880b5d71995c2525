import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { Reply, type ReplyBody } from '../../../platform/endpoint.ts'
import { GatewayError } from '../../../platform/errors.ts'
import { changedSink, type StreamPump, type StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import { type Content, type ContentCall, ContentCapture } from './content-capture.ts'
import { deleteContentBefore, deleteExpiredContent, findContent, insertContent } from './content-log-queries.ts'
import { ContentRoom } from './content-room.ts'

export interface ContentLogDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: (orgId: number) => string
}

/** The record of one call for the operator. */
export interface ContentRecord extends Content {
  readonly requestId: string
  readonly at: Date
  readonly keyId: number
  readonly model: string
}

/** The interval between deletions of expired rows. Reads ignore expired rows before they are deleted. */
export const contentExpiryMs = 30 * 60_000
const flushAfterMs = 200
const batchMax = 50
/** A batch is one statement, and the embedded database serves no other query during it. */
const batchMaxBytes = 1024 * 1024
const deletedAtOnce = 1000
/** The most organisations that are named after one flush. */
const namedMax = 20
/** The kind of news that an organisation has closed its window. The ref is its id. */
export const windowClosed = 'content_window_closed'
const dayMs = 24 * 3600_000

/**
 * Keeps the content of calls for organisations with a retention window. It never delays the calls: it collects content in memory as it passes,
 * then seals and inserts it in batches. It drops content with a counted warning when memory or the database does not take it. The memory is divided
 * by founder. A row is written only while a window is open, and is deleted when the window ends. Decisions 0122 and 0494 give the reasons.
 */
export class ContentLog {
  readonly #deps: ContentLogDeps
  readonly #open = new Set<ContentCapture>()
  #queue: ContentCapture[] = []
  readonly #room = new ContentRoom()
  /** The number of dropped calls of each organisation since the last warning. */
  readonly #dropped = new Map<number, number>()
  #stopTimer: (() => void) | null = null
  #flushing: Promise<void> = Promise.resolve()

  constructor(deps: ContentLogDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind === windowClosed) this.#discardAll(Number(news.ref))
    })
  }

  /** Returns the same reply and keeps what the client gets of it. */
  keep(call: ContentCall, made: Reply): Reply {
    const { body } = made
    if (body.kind === 'stream') {
      const pump: StreamPump = sink => this.#tap(call, body.pump, sink)
      return new Reply(made.status, made.headers, { ...body, pump }, made.cookies)
    }
    this.#note(call, bytesOf(body))
    return made
  }

  /** Keeps a call that was dialed and ended without a provider's reply. */
  keepFailure(call: ContentCall, error: unknown): void {
    this.#note(call, error instanceof GatewayError ? Buffer.from(JSON.stringify(error.toBody())) : Buffer.alloc(0))
  }

  /** Returns the content of a call while the organisation's window covers it, or else null. Only the operator may read it. */
  async read(orgId: number, requestId: string): Promise<ContentRecord | null> {
    await this.flush()
    const row = await this.#deps.db.maybe(findContent, orgId, requestId, this.#now())
    if (row === null) return null
    const { sealed, ...record } = row
    return { ...record, ...(JSON.parse(this.#deps.sealer.open(sealed, contentOwner(orgId, requestId))) as Content) }
  }

  /**
   * Deletes immediately the content that a window of `days` days no longer covers. With 0 days it deletes all content, including content that
   * waits in any process.
   */
  async shrink(orgId: number, days: number): Promise<void> {
    if (days === 0) await this.#deps.controlLog.change(async () => ({ value: undefined, news: [{ kind: windowClosed, ref: String(orgId) }] }))
    const before = new Date(days === 0 ? farMs : this.#deps.clock.nowMs() - days * dayMs)
    while ((await this.#deps.db.exec(deleteContentBefore, orgId, before, deletedAtOnce)) === deletedAtOnce);
  }

  /** Deletes expired rows of all organisations. */
  async expire(signal?: AbortSignal): Promise<void> {
    while (!signal?.aborted && (await this.#deps.db.exec(deleteExpiredContent, this.#now(), deletedAtOnce)) === deletedAtOnce);
  }

  /** Writes all waiting content. Never throws. */
  flush(): Promise<void> {
    this.#stopTimer?.()
    this.#stopTimer = null
    this.#flushing = this.#flushing.then(() => this.#flush())
    return this.#flushing
  }

  /** Writes the waiting content for the last time. */
  stop(): Promise<void> {
    return this.flush()
  }

  async #tap(call: ContentCall, pump: StreamPump, sink: StreamSink): Promise<void> {
    const capture = this.#begin(call)
    const kept = (chunk: Uint8Array): Uint8Array => {
      if (!capture.discarded) this.#add(capture, chunk)
      return chunk
    }
    try {
      await pump(changedSink(sink, kept))
    } finally {
      this.#end(capture)
    }
  }

  #note(call: ContentCall, bytes: Uint8Array): void {
    const capture = this.#begin(call)
    if (!capture.discarded) this.#add(capture, bytes)
    this.#end(capture)
  }

  #begin(call: ContentCall): ContentCapture {
    const { clock, founderOf = String } = this.#deps
    const capture = new ContentCapture(call, founderOf(call.orgId), clock.nowMs())
    if (this.#room.take(capture.founder, capture.heldBytes)) this.#open.add(capture)
    else {
      capture.discard()
      this.#noteDropped(capture)
      this.#schedule()
    }
    return capture
  }

  #add(capture: ContentCapture, chunk: Uint8Array): void {
    const part = capture.fitting(chunk)
    if (this.#room.take(capture.founder, part.length)) capture.add(part)
    else {
      this.#discard(capture)
      this.#noteDropped(capture)
      this.#schedule()
    }
  }

  #noteDropped({ call: { orgId } }: ContentCapture): void {
    this.#dropped.set(orgId, (this.#dropped.get(orgId) ?? 0) + 1)
  }

  #end(capture: ContentCapture): void {
    this.#open.delete(capture)
    if (capture.discarded) return
    this.#queue.push(capture)
    this.#schedule()
  }

  /** Lets go of the content of a call. Nothing of it is written. */
  #discard(capture: ContentCapture): void {
    this.#room.give(capture.founder, capture.discard())
  }

  #schedule(): void {
    this.#stopTimer ??= this.#deps.clock.after(flushAfterMs, () => void this.flush())
  }

  /** Discards all content of this organisation in memory. It is not written even if a new window opens later. */
  #discardAll(orgId: number): void {
    for (const capture of [...this.#open, ...this.#queue]) if (capture.call.orgId === orgId) this.#discard(capture)
  }

  async #flush(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      const kept = batch.filter(capture => !capture.discarded)
      try {
        if (kept.length > 0) await this.#insert(kept)
      } catch (error) {
        for (const capture of kept) this.#noteDropped(capture)
        this.#deps.log.warn('content_log_write_failed', { error })
      }
      for (const capture of batch) this.#discard(capture)
    }
    this.#warnOfDropped()
  }

  /** Writes a line for each of the first organisations, and one line for all others. */
  #warnOfDropped(): void {
    const counts = [...this.#dropped]
    this.#dropped.clear()
    for (const [orgId, count] of counts.slice(0, namedMax)) this.#deps.log.warn('content_log_dropped', { orgId, count })
    const rest = counts.slice(namedMax).reduce((sum, [, count]) => sum + count, 0)
    if (rest > 0) this.#deps.log.warn('content_log_dropped', { count: rest })
  }

  #takeBatch(): ContentCapture[] {
    let bytes = 0
    let count = 0
    for (const capture of this.#queue) {
      bytes += capture.heldBytes
      if (count > 0 && (count === batchMax || bytes > batchMaxBytes)) break
      count++
    }
    return this.#queue.splice(0, count)
  }

  async #insert(captures: readonly ContentCapture[]): Promise<void> {
    const { db, sealer } = this.#deps
    await db.exec(
      insertContent,
      captures.map(({ call }) => call.orgId),
      captures.map(({ call }) => call.requestId),
      captures.map(({ atMs }) => new Date(atMs)),
      captures.map(({ call }) => call.keyId),
      captures.map(({ call }) => call.model),
      captures.map(capture => sealer.seal(JSON.stringify(capture.content()), contentOwner(capture.call.orgId, capture.call.requestId))),
      this.#now(),
    )
  }

  #now(): Date {
    return new Date(this.#deps.clock.nowMs())
  }
}

/** A time after every row. */
const farMs = Date.UTC(9999, 0)

/** Returns the name that binds sealed content to its row. */
export const contentOwner = (orgId: number, requestId: string): string => `content:${orgId}:${requestId}`

function bytesOf(body: Exclude<ReplyBody, { kind: 'stream' }>): Uint8Array {
  switch (body.kind) {
    case 'bytes':
      return body.bytes
    case 'json':
      return Buffer.from(JSON.stringify(body.value))
    case 'empty':
      return Buffer.alloc(0)
  }
}
