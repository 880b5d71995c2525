/** What one organisation has seen of one route: moving averages of its own dials. */

/** Weight of the newest sample in the moving averages. Ours: about the last 10 calls matter for latency, the last 20 for failures. */
const latencyWeight = 0.2
export const failureWeight = 0.1
/** An average without a sample for so long says nothing any more. Ours. */
export const staleMs = 15 * 60 * 1000
/** Headroom is of the provider's current window, which is a minute nearly everywhere. */
export const headroomFreshMs = 60 * 1000
/** Replies with tool calls that must have been seen before their outcome counts, its weight, and how long it counts. Ours. */
const toolCallsMin = 5
const toolCallWeight = 0.05
const toolCallsStaleMs = 60 * 60 * 1000

/** What is known of a route; null = not measured lately. */
export interface Measurements {
  readonly latencyMs: number | null
  /** 0 to 1. */
  readonly failureRate: number | null
  /** Share of the provider's rate limit that is left, 0 to 1. */
  readonly headroom: number | null
  /** Share of tool calls whose arguments were no JSON, 0 to 1; null = too few seen lately. */
  readonly brokenToolCalls: number | null
}

export const nothingMeasured: Measurements = { latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

export const blend = (average: number, sample: number, weight: number): number => average + weight * (sample - average)

/** Latency: an average that goes stale. */
export class LatencyAverage {
  #averageMs: number | null = null
  #atMs = Number.NEGATIVE_INFINITY

  add(latencyMs: number, nowMs: number): void {
    this.#averageMs = this.of(nowMs) === null || this.#averageMs === null ? latencyMs : blend(this.#averageMs, latencyMs, latencyWeight)
    this.#atMs = nowMs
  }

  /** Milliseconds; null without a fresh sample. */
  of(nowMs: number): number | null {
    return nowMs - this.#atMs > staleMs ? null : this.#averageMs
  }
}

/** The share of replies with tool calls that were broken. */
export class ToolCallAverage {
  #seen = 0
  #brokenShare = 0
  #atMs = Number.NEGATIVE_INFINITY

  add(isSound: boolean, nowMs: number): void {
    if (nowMs - this.#atMs > toolCallsStaleMs) this.#seen = 0
    this.#seen++
    this.#atMs = nowMs
    // The plain mean at first, so that one broken call among the first is no verdict, then a moving average.
    this.#brokenShare = blend(this.#brokenShare, isSound ? 0 : 1, Math.max(1 / this.#seen, toolCallWeight))
  }

  /** 0 to 1; null when too few were seen lately. */
  of(nowMs: number): number | null {
    return this.#seen < toolCallsMin || nowMs - this.#atMs > toolCallsStaleMs ? null : this.#brokenShare
  }
}

/** The averages of one organisation on one route. */
export class OwnAverages {
  readonly toolCalls = new ToolCallAverage()
  /** When the provider last refused a call as one too many, without a word on its limit since. */
  limitedAtMs = Number.NEGATIVE_INFINITY
  #latencyMs: number | null = null
  #failureRate: number | null = null
  #sampledAtMs = Number.NEGATIVE_INFINITY

  /** `latencyMs` null: the dial failed. */
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

  /** Milliseconds; null without a fresh sample. */
  latencyMs(nowMs: number): number | null {
    return this.#isStale(nowMs) ? null : this.#latencyMs
  }

  /** 0 to 1; null without a fresh sample. */
  failureRate(nowMs: number): number | null {
    return this.#isStale(nowMs) ? null : this.#failureRate
  }

  #isStale(nowMs: number): boolean {
    return nowMs - this.#sampledAtMs > staleMs
  }
}
