/** The work of one search call: lines of one object after the other, until there are enough matches or enough has been done. */
import type { Clock } from '../platform/clock.ts'
import type { StoredObject } from './object-store.ts'
import { type AuthorView, authorInMetadata, writtenMsOf } from './provenance.ts'
import { type LineMatcher, piecesOf, snippetOf, textOf } from './search-text.ts'

export interface SearchMatch {
  readonly key: string
  /** From 1. */
  readonly line: number
  readonly snippet: string
  readonly etag: string
  /** Null when the object did not come through the gateway. */
  readonly author: AuthorView | null
  readonly modified: string
}

/** Where a search stopped. */
export interface Position {
  readonly key: string
  /** Of the object in which it stopped; empty when it was done with it. */
  readonly etag: string
  /** Lines it was done with. */
  readonly line: number
  /** Characters of the next line it was done with. */
  readonly offset: number
}

export interface SearchRunOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly matcher: LineMatcher
  readonly limit: number
}

/** What one call does at most. */
const objectsMax = 500
const bytesMax = 32 * 1024 * 1024
const timeMsMax = 5_000
/** Other calls of this process get their turn after so long. */
const turnMsMax = 10

export class SearchRun {
  readonly #options: SearchRunOptions
  readonly #endMs: number
  #turnEndMs: number
  readonly matches: SearchMatch[] = []
  objects = 0
  bytes = 0
  last: Position | null = null

  constructor(options: SearchRunOptions) {
    this.#options = options
    const nowMs = options.clock.monotonicMs()
    this.#endMs = nowMs + timeMsMax
    this.#turnEndMs = nowMs + turnMsMax
  }

  /** Whether this call leaves an object of that size to the next one. The first object is always looked at. */
  isSpent(sizeBytes: number): boolean {
    if (this.objects === 0) return false
    if (this.matches.length >= this.#options.limit || this.objects >= objectsMax) return true
    return this.bytes + sizeBytes > bytesMax || this.#options.clock.monotonicMs() >= this.#endMs
  }

  /**
   * Looks at the lines of an object, from where a search stopped in these very bytes, else from the first. True when it stopped before
   * the end of the object. Null is an object that is gone, over, or too large.
   */
  async look(key: string, object: StoredObject | null, stopped: Position | null): Promise<boolean> {
    this.objects++
    this.bytes += object?.bytes.length ?? 0
    const text = object === null ? null : textOf(object.bytes)
    if (object !== null && text !== null) {
      const from = stopped?.key === key && stopped.etag === object.etag ? stopped : { line: 0, offset: 0 }
      let matchedLine = 0
      for (const piece of piecesOf(text, from)) {
        if (piece.line === matchedLine) continue
        const at = this.#options.matcher(piece.text)
        if (at >= 0) {
          matchedLine = piece.line
          this.#add(key, object, piece.line, snippetOf(piece.text, at))
        }
        const isLineDone = at >= 0 || piece.isLineEnd
        const isOver = await this.#turn()
        if (isOver || this.matches.length >= this.#options.limit) {
          this.last = { key, etag: object.etag, line: isLineDone ? piece.line : piece.line - 1, offset: isLineDone ? 0 : piece.nextOffset }
          return true
        }
      }
    }
    this.last = { key, etag: '', line: 0, offset: 0 }
    return false
  }

  #add(key: string, object: StoredObject, line: number, snippet: string): void {
    const modified = new Date(writtenMsOf(object)).toISOString()
    this.matches.push({ key, line, snippet, etag: object.etag, author: authorInMetadata(object.metadata), modified })
  }

  /** Gives other calls their turn now and then. True when the time of this call is over. */
  async #turn(): Promise<boolean> {
    const { clock, signal } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#turnEndMs) return false
    await clock.sleep(0, signal)
    this.#turnEndMs = clock.monotonicMs() + turnMsMax
    return nowMs >= this.#endMs
  }
}
