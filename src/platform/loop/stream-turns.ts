/**
 * Divides the event loop between streams that bring data faster than it can be processed. All streams together take a bounded part of one turn of the loop,
 * so that a turn ends soon, however many streams there are. The owners of the streams take turns. Decision 0662 says why.
 */
import type { Clock } from '../clock.ts'

/** All streams together may take this number of bytes between two turns of resting streams. */
export const sharedMaxBytes = 64 * 1024
/** A turn of resting streams ends after this time. The stream that runs then finishes its part. */
const turnMs = 4
/** After this time in a turn, the next owner follows. */
const ownerMs = 1

/** The streams of one process that wait for their next part. */
export class StreamTurns {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #ownerOf: (orgId: number) => string = String
  /** The resting streams of each owner, in the order in which the owners and the streams continue. */
  readonly #resting = new Map<string, (() => void)[]>()
  #count = 0
  #isScheduled = false
  #spentBytes = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** From now on, `ownerOf` returns the owner of an organisation. Before that, each organisation is its own owner. */
  divideBy(ownerOf: (orgId: number) => string): void {
    this.#ownerOf = ownerOf
  }

  /** True when streams have taken so many bytes that the next one must rest before it takes more. */
  get isSpent(): boolean {
    return this.#spentBytes > sharedMaxBytes
  }

  /** Counts bytes that a stream has taken. */
  spend(bytes: number): void {
    this.#spentBytes += bytes
  }

  /** Calls `goOn` once, when it is the turn of the stream. `orgId` is null for a stream of no organisation. */
  rest(orgId: number | null, goOn: () => void): void {
    const owner = orgId === null ? 'nobody' : this.#ownerOf(orgId)
    const resting = this.#resting.get(owner)
    if (resting === undefined) this.#resting.set(owner, [goOn])
    else resting.push(goOn)
    this.#count++
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#serve)
  }

  /** Runs one turn: at most as many parts as there are resting streams now, until its time is over. */
  readonly #serve = (): void => {
    const startMs = this.#clock.monotonicMs()
    let nowMs = startMs
    let ownerStartMs = startMs
    try {
      for (let left = this.#count; left > 0 && nowMs - startMs < turnMs; left--) {
        const [owner, resting] = this.#first()
        this.#count--
        this.#spentBytes = 0
        resting.shift()?.()
        nowMs = this.#clock.monotonicMs()
        if (resting.length > 0 && nowMs - ownerStartMs < ownerMs) continue
        this.#resting.delete(owner)
        if (resting.length > 0) this.#resting.set(owner, resting)
        ownerStartMs = nowMs
      }
    } finally {
      this.#spentBytes = 0
      this.#isScheduled = false
      if (this.#count > 0) this.#schedule()
    }
  }

  /** Returns the owner whose turn it is, with its resting streams. */
  #first(): [string, (() => void)[]] {
    for (const entry of this.#resting) return entry
    return ['', []]
  }
}
