/** Moving averages of one route, computed from the dials of one organisation. */

/** Weights of the newest sample in the moving averages. About the last 10 calls count for latency, and the last 20 for failures. We chose the values. */
const latencyWeight = 0.2
export const failureWeight = 0.1
/** An average without a new sample for this time is dropped. Our choice. */
export const staleMs = 15 * 60 * 1000
/** How long a value of headroom is used. Nearly all providers limit rates by windows of a minute. */
export const headroomFreshMs = 60 * 1000
/** Number of replies with tool calls before their share counts, weight of a new reply, and how long the share is used. Our choice. */
const toolCallsMin = 5
const toolCallWeight = 0.05
const toolCallsStaleMs = 60 * 60 * 1000

/** What is known about a route. A value is null when it was not measured recently. */
export interface Measurements {
  readonly latencyMs: number | null
  /** 0 to 1. */
  readonly failureRate: number | null
  /** Share of the provider's rate limit that is left, 0 to 1. */
  readonly headroom: number | null
  /** Share of tool-calling replies whose arguments were invalid JSON, 0 to 1. Null when there were too few such replies recently. */
  readonly brokenToolCalls: number | null
}

export const nothingMeasured: Measurements = { latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

export const blend = (average: number, sample: number, weight: number): number => average + weight * (sample - average)

/** A moving average of latency that becomes null when it is stale. */
export class LatencyAverage {
  #averageMs: number | null = null
  #atMs = Number.NEGATIVE_INFINITY

  add(latencyMs: number, nowMs: number): void {
    this.#averageMs = this.of(nowMs) === null || this.#averageMs === null ? latencyMs : blend(this.#averageMs, latencyMs, latencyWeight)
    this.#atMs = nowMs
  }

  /** Returns milliseconds, or null without a recent sample. */
  of(nowMs: number): number | null {
    return nowMs - this.#atMs > staleMs ? null : this.#averageMs
  }
}

/** The share of tool-calling replies that were broken. */
export class ToolCallAverage {
  #seen = 0
  #brokenShare = 0
  #atMs = Number.NEGATIVE_INFINITY

  add(isSound: boolean, nowMs: number): void {
    if (nowMs - this.#atMs > toolCallsStaleMs) this.#seen = 0
    this.#seen++
    this.#atMs = nowMs
    // The plain mean is used for the first replies, so that one broken reply does not decide. Later it is a moving average.
    this.#brokenShare = blend(this.#brokenShare, isSound ? 0 : 1, Math.max(1 / this.#seen, toolCallWeight))
  }

  /** Returns 0 to 1, or null when too few replies were seen recently. */
  of(nowMs: number): number | null {
    return this.#seen < toolCallsMin || nowMs - this.#atMs > toolCallsStaleMs ? null : this.#brokenShare
  }
}

/** The averages of one organisation on one route. */
export class OwnAverages {
  readonly toolCalls = new ToolCallAverage()
  /** When the provider last refused a call with 429. It is reset when a later reply states the remaining limit. */
  limitedAtMs = Number.NEGATIVE_INFINITY
  #latencyMs: number | null = null
  #failureRate: number | null = null
  #sampledAtMs = Number.NEGATIVE_INFINITY

  /** Adds the result of a dial. `latencyMs` is null when the dial failed. */
  add(latencyMs: number | null, nowMs: number): void {
    if (nowMs - this.#sampledAtMs > staleMs) {
      this.#latencyMs = null
      this.#failureRate = null
    }
    this.#sampledAtMs = nowMs
    const failed = latencyMs === null ? 1 : 0
    this.#failureRate = this.#failureRate === null ? failed : blend(this.#failureRate, failed, failureWeight)
    if (latencyMs !== null) this.#latencyMs = this.#latencyMs === null ? latencyMs : blend(this.#latencyMs, latencyMs, latencyWeight)
  }

  /** Returns milliseconds, or null without a recent sample. */
  latencyMs(nowMs: number): number | null {
    return this.#isStale(nowMs) ? null : this.#latencyMs
  }

  /** Returns 0 to 1, or null without a recent sample. */
  failureRate(nowMs: number): number | null {
    return this.#isStale(nowMs) ? null : this.#failureRate
  }

  #isStale(nowMs: number): boolean {
    return nowMs - this.#sampledAtMs > staleMs
  }
}
