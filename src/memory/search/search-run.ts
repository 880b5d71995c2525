/** The work of one search call. It searches one object after the other, line by line, until it has enough matches or reaches a bound. */
import type { Clock } from '../../platform/clock.ts'
import type { KeyQueue } from '../access/key-queue.ts'
import { type AuthorView, authorInMetadata, writtenMsOf } from '../provenance.ts'
import type { StoredObject } from '../stores/object-store.ts'
import { checkText, firstPlace, type Piece, type Place, piecesOf } from './search-pieces.ts'
import { type LineMatcher, snippetOf } from './search-text.ts'

export interface SearchMatch {
  readonly key: string
  /** Counted from 1. */
  readonly line: number
  readonly snippet: string
  readonly etag: string
  /** Null when the object did not come through the gateway. */
  readonly author: AuthorView | null
  readonly modified: string
}

/** Where a search stopped. */
export interface Position extends Place {
  readonly key: string
  /** The etag of the object in which the search stopped. Empty when the search had finished this object. */
  readonly etag: string
}

export interface SearchRunOptions {
  /** The turns of all searches of the process. One search computes at a time. */
  readonly turns: KeyQueue
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly matcher: LineMatcher
  readonly limit: number
}

/** The bounds of one call: objects, bytes and milliseconds. */
const objectsMax = 500
const bytesMax = 32 * 1024 * 1024
const timeMsMax = 3_000
/** After this time the search yields to the other work of this process. */
const turnMsMax = 10

export class SearchRun {
  readonly #options: SearchRunOptions
  readonly #endMs: number
  readonly matches: SearchMatch[] = []
  objects = 0
  bytes = 0
  last: Position | null = null

  constructor(options: SearchRunOptions) {
    this.#options = options
    this.#endMs = options.clock.monotonicMs() + timeMsMax
  }

  /** Returns whether this call must leave an object of that size to the next call. A call always searches at least one object. */
  isSpent(sizeBytes: number): boolean {
    if (this.objects === 0) return false
    if (this.matches.length >= this.#options.limit || this.objects >= objectsMax) return true
    return this.bytes + sizeBytes > bytesMax || this.#options.clock.monotonicMs() >= this.#endMs
  }

  /**
   * Searches the lines of an object. When an earlier call stopped in this object and its etag is the same, the search continues there. Otherwise it begins
   * at the first line. Returns true when it stops before the end of the object. `object` is null when it is gone, expired or too large.
   */
  async look(key: string, object: StoredObject | null, stopped: Position | null): Promise<boolean> {
    this.objects++
    this.bytes += object?.bytes.length ?? 0
    if (object !== null && (await this.#isText(object.bytes))) {
      const from = stopped?.key === key && stopped.etag === object.etag ? stopped : firstPlace
      const pieces = piecesOf(object.bytes, this.#options.matcher.pieceChars, from)
      for (let state = await this.#turn(key, object, pieces); state !== 'done'; state = await this.#turn(key, object, pieces))
        if (state === 'stopped') return true
    }
    this.last = { key, etag: '', ...firstPlace }
    return false
  }

  /** Checks in turns of the searches whether an object is text, because an object can have many megabytes. */
  async #isText(bytes: Buffer): Promise<boolean> {
    const { turns, clock, signal } = this.#options
    const slices = checkText(bytes)
    for (;;) {
      const known = await turns.run('search', async () => {
        const turnEndMs = clock.monotonicMs() + turnMsMax
        for (let next = slices.next(); ; next = slices.next()) {
          if (next.done === true) return next.value
          if (clock.monotonicMs() >= turnEndMs) break
        }
        await clock.sleep(0, signal)
        return null
      })
      if (known !== null) return known
    }
  }

  /** Runs one turn of this search. Then all other work of the process runs before the next search gets a turn. */
  #turn(key: string, object: StoredObject, pieces: Iterator<Piece>): Promise<'more' | 'done' | 'stopped'> {
    const { turns, clock, signal } = this.#options
    return turns.run('search', async () => {
      const turnEndMs = clock.monotonicMs() + turnMsMax
      for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
        this.#lookAt(key, object, next.value)
        const nowMs = clock.monotonicMs()
        if (nowMs >= this.#endMs || this.matches.length >= this.#options.limit) return 'stopped'
        if (nowMs < turnEndMs) continue
        await clock.sleep(0, signal)
        return 'more'
      }
      return 'done'
    })
  }

  #lookAt(key: string, object: StoredObject, { line, text, isLineEnd, start, nextStart, nextOffset }: Piece): void {
    // Only the first match of a long line counts.
    const isMatched = this.matches.at(-1)?.line === line && this.matches.at(-1)?.key === key
    const at = isMatched ? -1 : this.#options.matcher.find(text)
    if (at >= 0) this.#add(key, object, line, snippetOf(text, at))
    const isLineDone = isLineEnd || isMatched || at >= 0
    const place = isLineDone ? { line, start: nextStart, offset: 0 } : { line: line - 1, start, offset: nextOffset }
    this.last = { key, etag: object.etag, ...place }
  }

  #add(key: string, object: StoredObject, line: number, snippet: string): void {
    const modified = new Date(writtenMsOf(object)).toISOString()
    this.matches.push({ key, line, snippet, etag: object.etag, author: authorInMetadata(object.metadata), modified })
  }
}
