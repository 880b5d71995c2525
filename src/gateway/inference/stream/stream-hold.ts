import type { Clock } from '../../../platform/clock.ts'
import { plainUsage } from '../../wire/usage.ts'
import { firstStreamSliceTokens, streamSliceMaxTokens, unseenTokensOf, unseenTokensPerSecond } from '../charge/estimate.ts'
import type { Meter } from '../charge/meter.ts'
import type { StreamEnd } from './stream-end.ts'

/** How long a stream waits, unread, for an extension of its hold that the database has not answered yet. */
const coverWaitMs = 500

/** What a stream's cover asks of the meter of its call. */
type Hold = Pick<Meter, 'extendTo' | 'coveredTokens' | 'refusedBy'>

/**
 * Keeps a stream's hold ahead of what it has produced: when half a slice is left, the next one (twice as large, at most 2,048 tokens)
 * is asked for. Almost always that is decided locally and immediately. A stream that is not covered never runs on. Decision 0206 says why.
 */
export class StreamHold {
  #coveredTokens: number
  #sliceTokens = firstStreamSliceTokens
  #asking: Promise<void> | null = null
  #refused = false
  /** Tokens that were thought and not shown, by the time that the stream was silent. */
  #unseenTokens: number
  /** The silence that is being counted: since when, and the output that came before it. */
  #silence: { readonly outputTokens: number; sinceMs: number } | null = null
  readonly #promptTokens: number
  readonly #maxTokens: number | null
  readonly #meter: Hold
  readonly #clock: Pick<Clock, 'sleep' | 'monotonicMs'>

  /** `unseenTokens`: what was thought before the first chunk, of a model that thinks unseen. */
  constructor(
    meter: Hold,
    clock: Pick<Clock, 'sleep' | 'monotonicMs'>,
    promptTokens: number,
    coveredTokens: number,
    maxTokens: number | null,
    unseenTokens = 0,
  ) {
    this.#unseenTokens = unseenTokens
    this.#meter = meter
    this.#clock = clock
    this.#promptTokens = promptTokens
    this.#coveredTokens = coveredTokens
    this.#maxTokens = maxTokens
  }

  /** Nothing more will be held: a budget has refused, or `close` was called. */
  get isClosed(): boolean {
    return this.#refused
  }

  /** Tokens of output that are held. */
  get heldTokens(): number {
    return this.#coveredTokens
  }

  /** Holds no more. */
  close(): void {
    this.#refused = true
  }

  /** After each chunk. true: go on; false: the stream must end now; a promise only when cover has run out and an answer is awaited. */
  afterChunk(shownTokens: number): boolean | Promise<boolean> {
    const outputTokens = shownTokens + this.#unseenTokens
    if (this.#maxTokens !== null && this.#coveredTokens >= this.#maxTokens) return true
    if (!this.#refused && this.#asking === null && outputTokens > this.#coveredTokens - this.#sliceTokens / 2) this.#ask(outputTokens)
    if (this.#isCovered(outputTokens)) return true
    return this.#refused ? false : this.#waitForCover(outputTokens)
  }

  /**
   * Now and then while a model that thinks unseen says nothing: what it may have thought since the last look has to be covered as well.
   * False: it is not, and the budget has refused more; the stream must end now.
   */
  duringSilence(shownTokens: number): boolean {
    if (this.#maxTokens !== null && this.#coveredTokens >= this.#maxTokens) return true
    const nowMs = this.#clock.monotonicMs()
    const silence = this.#silence
    if (silence === null || silence.outputTokens !== shownTokens) {
      this.#silence = { outputTokens: shownTokens, sinceMs: nowMs }
      return true
    }
    this.#unseenTokens += ((nowMs - silence.sinceMs) * unseenTokensPerSecond) / 1000
    silence.sinceMs = nowMs
    const outputTokens = shownTokens + this.#unseenTokens
    if (!this.#refused && this.#asking === null && outputTokens > this.#coveredTokens - this.#sliceTokens / 2) this.#ask(Math.ceil(outputTokens))
    return !this.#refused || this.#isCovered(outputTokens)
  }

  /**
   * What a model that thinks unseen is taken to have made by now, shown and unseen; `lastChunkMs` is when its last chunk came, `tokensPerSecond` how fast
   * it writes.
   */
  outputTokens(shownTokens: number, lastChunkMs: number, tokensPerSecond = unseenTokensPerSecond): number {
    const silence = this.#silence
    const sinceMs = silence !== null && silence.outputTokens === shownTokens ? Math.max(silence.sinceMs, lastChunkMs) : lastChunkMs
    const unseen = this.#unseenTokens + unseenTokensOf(Math.max(0, this.#clock.monotonicMs() - sinceMs))
    return Math.ceil(shownTokens + (unseen * tokensPerSecond) / unseenTokensPerSecond)
  }

  #isCovered(outputTokens: number): boolean {
    return outputTokens < this.#coveredTokens || (this.#maxTokens !== null && this.#coveredTokens >= this.#maxTokens)
  }

  /** Asks for the next slice behind what is covered, or behind the output when that came in a burst and lies further on. */
  #ask(outputTokens: number): void {
    const sliceTokens = Math.min(this.#sliceTokens * 2, streamSliceMaxTokens)
    const wanted = Math.max(this.#coveredTokens, outputTokens) + sliceTokens
    const target = this.#maxTokens === null ? wanted : Math.min(wanted, this.#maxTokens)
    const tokens = plainUsage(this.#promptTokens, target)
    const take = (granted: boolean): void => {
      if (granted) {
        this.#coveredTokens = target
        this.#sliceTokens = sliceTokens
        return
      }
      this.#refused = true
      // What was left is held now; the stream may use it up.
      this.#coveredTokens = Math.max(this.#coveredTokens, this.#meter.coveredTokens(this.#promptTokens))
    }
    const answer = this.#meter.extendTo(tokens)
    if (typeof answer === 'boolean') {
      take(answer)
      return
    }
    this.#asking = answer
      .then(take, () => take(false))
      .finally(() => {
        this.#asking = null
      })
  }

  /** Why a stream that is not covered ends: the budget or balance that refused, or nobody who could say that one covers it. */
  get refusal(): StreamEnd {
    switch (this.#meter.refusedBy) {
      case 'agent':
        return { name: 'agent_budget_exceeded' }
      case 'prepaid':
        return { name: 'insufficient_credits' }
      case null:
        return { name: 'database_unavailable', message: 'The gateway cannot confirm that the budget covers more of this stream.' }
      default:
        return { name: 'budget_exceeded' }
    }
  }

  /** An answer under way may be to a smaller question, from before the burst: then the right one is asked behind it. */
  async #waitForCover(outputTokens: number): Promise<boolean> {
    const deadline = new AbortController()
    const late = this.#clock.sleep(coverWaitMs, deadline.signal).then(
      () => true,
      () => false,
    )
    let isLate = false
    while (!this.#isCovered(outputTokens) && !this.#refused && !isLate) {
      if (this.#asking === null) this.#ask(outputTokens)
      else isLate = await Promise.race([this.#asking.then(() => false), late])
    }
    deadline.abort()
    return this.#isCovered(outputTokens)
  }
}
