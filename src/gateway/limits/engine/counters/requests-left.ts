/** Says how many requests and tokens of this minute, and requests of this day, a caller has left, from the numbers in memory. Decision 0802 gives the reasons. */
import { endOfIstDayMs, endOfIstMinuteMs, istDay, istMinute } from '../../../../platform/values/ist-time.ts'
import type { Counter } from './counter-state.ts'

/** The tightest of the limits of one period. */
export class LimitLeft {
  /** The requests that the period allows. Null when no limit of this period exists. */
  limit: number | null = null
  left = 0
  /** The end of the period in Unix milliseconds. */
  endsAtMs = 0

  /** Forgets the limits, for another caller. */
  begin(endsAtMs: number): void {
    this.limit = null
    this.endsAtMs = endsAtMs
  }

  /** Takes a limit into account. `counter` is absent when this process has not counted in this period yet. */
  note(limit: number, counter: Counter | null | undefined, monotonicMs: number): void {
    const left = leftOf(limit, counter, this.endsAtMs, monotonicMs)
    if (this.limit !== null && (left > this.left || (left === this.left && limit >= this.limit))) return
    this.limit = limit
    this.left = left
  }
}

/**
 * The requests that one caller has left. Each process has one such object, which every call fills again, so that no call makes an object. Its figures are
 * those of the last caller.
 */
export class RequestsLeft {
  /** The time of the figures, in Unix milliseconds by the database's clock. */
  nowMs = 0
  readonly minute = new LimitLeft()
  readonly day = new LimitLeft()
  /** The tokens of the minute. */
  readonly tokens = new LimitLeft()
  #dayText = ''
  #minuteText = ''

  /** Forgets the figures, for another caller. */
  begin(nowMs: number): void {
    this.nowMs = nowMs
    const minuteEndsAtMs = endOfIstMinuteMs(nowMs)
    if (minuteEndsAtMs !== this.minute.endsAtMs) this.#minuteText = istMinute(nowMs)
    this.minute.begin(minuteEndsAtMs)
    this.tokens.begin(minuteEndsAtMs)
    const dayEndsAtMs = endOfIstDayMs(nowMs)
    if (dayEndsAtMs !== this.day.endsAtMs) this.#dayText = istDay(nowMs)
    this.day.begin(dayEndsAtMs)
  }

  /** The name of the day's period. */
  get dayText(): string {
    return this.#dayText
  }

  /** The name of the minute's period. */
  get minuteText(): string {
    return this.#minuteText
  }

  /** The limit of requests that the caller reaches first: the one with the fewest requests left, and of equal ones the one that ends last. Null without limits. */
  get tightest(): LimitLeft | null {
    const { minute, day } = this
    if (day.limit === null) return minute.limit === null ? null : minute
    return minute.limit !== null && minute.left < day.left ? minute : day
  }
}

/**
 * Returns the requests that a limit leaves as far as this process knows. Other processes may have used more. A counter of an earlier period says nothing
 * about this one.
 */
function leftOf(limit: number, counter: Counter | null | undefined, endsAtMs: number, monotonicMs: number): number {
  if (counter === null || counter === undefined || counter.endsAtMs !== endsAtMs) return limit
  if (counter.refusal !== null && monotonicMs < counter.refusal.untilMs) return 0
  if (counter.offline) return Number(counter.idle)
  const left = limit - Number(counter.knownSpent + counter.held)
  return left > 0 ? left : 0
}
