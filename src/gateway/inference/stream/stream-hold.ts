import type { Clock } from '../../../platform/clock.ts'
import { plainUsage } from '../../wire/usage.ts'
import { firstStreamSliceTokens, streamSliceMaxTokens, unseenTokensOf, unseenTokensPerSecond } from '../charge/estimate.ts'
import type { Meter } from '../charge/meter.ts'
import type { StreamEnd } from './stream-end.ts'

/** The time for which a stream waits, unread, until the database answers about an extension of its hold. */
const coverWaitMs = 500

/** The part of the meter that the hold of a stream uses. */
type Hold = Pick<Meter, 'extendTo' | 'coveredTokens' | 'refusedBy'>

/**
 * Keeps a stream's hold ahead of its output. When half a slice is left, it asks for the next slice, which is twice as large and has at most
 * 2,048 tokens. The answer is almost always local and immediate. A stream without cover ends. Decision 0206 gives the reasons.
 */
export class StreamHold {
  #coveredTokens: number
  #sliceTokens = firstStreamSliceTokens
  #asking: Promise<void> | null = null
  #refused = false
  /** The assumed tokens of hidden thinking, by the time in which the stream was silent. */
  #unseenTokens: number
  /** The silence that is being counted: its begin, and the output before it. */
  #silence: { readonly outputTokens: number; sinceMs: number } | null = null
  readonly #promptTokens: number
  readonly #maxTokens: number | null
  readonly #meter: Hold
  readonly #clock: Pick<Clock, 'sleep' | 'monotonicMs'>

  /** `unseenTokens` is the assumed thinking before the first chunk, for a model with hidden thinking. */
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

  /** True when the hold does not grow any more, because a budget has refused or `close` was called. */
  get isClosed(): boolean {
    return this.#refused
  }

  /** The output tokens that are held. */
  get heldTokens(): number {
    return this.#coveredTokens
  }

  /** Stops the growth of the hold. */
  close(): void {
    this.#refused = true
  }

  /**
   * Is called after each chunk. Returns true when the stream may go on, and false when it must end now. Returns a promise only when the cover is
   * used up and an answer is awaited.
   */
  afterChunk(shownTokens: number): boolean | Promise<boolean> {
    const outputTokens = shownTokens + this.#unseenTokens
    if (this.#maxTokens !== null && this.#coveredTokens >= this.#maxTokens) return true
    if (!this.#refused && this.#asking === null && outputTokens > this.#coveredTokens - this.#sliceTokens / 2) this.#ask(outputTokens)
    if (this.#isCovered(outputTokens)) return true
    return this.#refused ? false : this.#waitForCover(outputTokens)
  }

  /**
   * Is called from time to time while a model with hidden thinking is silent. The assumed thinking since the last call must be covered as well.
   * Returns false when it is not covered and a budget has refused more; the stream must then end now.
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
   * Returns the tokens that a model with hidden thinking is assumed to have made, shown and hidden. `lastChunkMs` is the time of its last chunk,
   * and `tokensPerSecond` the speed of the model.
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

  /** Asks for the next slice after the cover. When a burst of output is already beyond the cover, it asks for the slice after that output. */
  #ask(outputTokens: number): void {
    const sliceTokens = Math.min(this.#sliceTokens * 2, streamSliceMaxTokens)
    const wanted = Math.ceil(Math.max(this.#coveredTokens, outputTokens)) + sliceTokens
    const target = this.#maxTokens === null ? wanted : Math.min(wanted, this.#maxTokens)
    const tokens = plainUsage(this.#promptTokens, target)
    const take = (granted: boolean): void => {
      if (granted) {
        this.#coveredTokens = target
        this.#sliceTokens = sliceTokens
        return
      }
      this.#refused = true
      // The hold now includes all that was left, and the stream may use it up.
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

  /** The reason for which a stream without cover ends: the budget or balance that refused, or a database that could not be asked. */
  get refusal(): StreamEnd {
    switch (this.#meter.refusedBy) {
      case 'agent':
        return { name: 'agent_budget_exceeded' }
      case 'run':
        return { name: 'run_budget_exceeded' }
      case 'prepaid':
        return { name: 'insufficient_credits' }
      case null:
        return { name: 'database_unavailable', message: 'The gateway cannot confirm that the budget covers more of this stream.' }
      default:
        return { name: 'budget_exceeded' }
    }
  }

  /** Waits for cover. A pending answer may belong to a smaller request from before the burst; the right amount is then requested after it. */
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
