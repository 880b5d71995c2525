/**
 * Averages of one route over all organisations. One founder (person who created organisations) cannot change them alone. Failures count only when at
 * least two founders have seen some, and each founder adds only a small part. For the other measurements, the lower median of the founders' values is
 * used. Decision 0465 gives the reasons.
 */
import { failureWeight, headroomFreshMs, LatencyAverage, staleMs, ToolCallAverage } from './averages.ts'

/** Number of founders that must have measured a value before it counts for all. */
const foundersMin = 2
/**
 * The maximum that the failures of one founder add to the shared failure rate. It is below the lowest rate that makes a route unreliable (rank.ts).
 * Our choice.
 */
const founderPartMax = 0.04
/** A part below this value is dropped. A part falls below it about 45 calls after a failure. */
const partMin = 0.001
/** Maximum number of founders that are remembered for a route. Above it, the founder with the oldest last sample is dropped. */
const foundersKept = 50
/** How long a computed median is reused while no new sample arrives, in milliseconds. */
const middleFreshMs = 1000

/** The part of the shared failure rate that one founder's failures contribute. */
interface FailurePart {
  part: number
  failedAtMs: number
}

/** Keeps one average for each founder. The shared value is the lower median of these averages. */
class Middle<Average extends { of(nowMs: number): number | null }> {
  readonly #byFounder = new Map<string, Average>()
  readonly #make: () => Average
  #value: number | null = null
  #computedAtMs = Number.NEGATIVE_INFINITY

  constructor(make: () => Average) {
    this.#make = make
  }

  /** Returns the average of a founder, and creates it if needed. It is called before the founder adds a sample. */
  of(founder: string): Average {
    const average = this.#byFounder.get(founder) ?? this.#make()
    this.#computedAtMs = Number.NEGATIVE_INFINITY
    keepLatest(this.#byFounder, founder, average)
    return average
  }

  /** Returns the lower median, or null when fewer than two founders have a recent value. */
  value(nowMs: number): number | null {
    if (nowMs - this.#computedAtMs < middleFreshMs) return this.#value
    const values = [...this.#byFounder.values()].flatMap(average => average.of(nowMs) ?? []).sort((a, b) => a - b)
    this.#value = values.length < foundersMin ? null : (values[Math.floor((values.length - 1) / 2)] ?? null)
    this.#computedAtMs = nowMs
    return this.#value
  }
}

export class SharedAverages {
  readonly latency = new Middle(() => new LatencyAverage())
  readonly toolCalls = new Middle(() => new ToolCallAverage())
  readonly #failures = new Map<string, FailurePart>()
  #sampledAtMs = Number.NEGATIVE_INFINITY
  #headroom = 0
  #headroomAtMs = Number.NEGATIVE_INFINITY
  #limitedFounder: string | null = null
  #limitedAtMs = Number.NEGATIVE_INFINITY

  /**
   * Adds the result of a dial. `latencyMs` is null when the dial failed. Every dial reduces the parts of all founders. A failure then adds to the
   * part of its own founder.
   */
  add(founder: string, latencyMs: number | null, nowMs: number): void {
    this.#sampledAtMs = nowMs
    for (const [name, each] of this.#failures) {
      each.part *= 1 - failureWeight
      if (each.part < partMin) this.#failures.delete(name)
    }
    if (latencyMs !== null) {
      this.latency.of(founder).add(latencyMs, nowMs)
      return
    }
    const part = (this.#failures.get(founder)?.part ?? 0) + failureWeight
    keepLatest(this.#failures, founder, { part, failedAtMs: nowMs })
  }

  /** Returns 0 to 1. Returns 0 while fewer than two founders have recent failures, and null without a recent sample. */
  failureRate(nowMs: number): number | null {
    if (nowMs - this.#sampledAtMs > staleMs) return null
    if (this.#failures.size < foundersMin) return 0
    const fresh = [...this.#failures.values()].filter(({ failedAtMs }) => nowMs - failedAtMs <= staleMs)
    return fresh.length < foundersMin ? 0 : fresh.reduce((sum, { part }) => sum + Math.min(part, founderPartMax), 0)
  }

  /**
   * Records the remaining share that the provider states for the platform's key. One founder's call is enough, because the provider itself states the
   * value.
   */
  noteHeadroom(share: number, nowMs: number): void {
    this.#headroom = share
    this.#headroomAtMs = nowMs
  }

  /** Records that the provider refused a call with 429. When a second founder sees a 429 within a minute, the remaining share becomes 0 for all. */
  noteLimited(founder: string, nowMs: number): void {
    if (this.#limitedFounder !== null && this.#limitedFounder !== founder && nowMs - this.#limitedAtMs < headroomFreshMs) this.noteHeadroom(0, nowMs)
    this.#limitedFounder = founder
    this.#limitedAtMs = nowMs
  }

  /**
   * Returns the remaining share of the provider's rate limit for a caller whose last 429 was at `limitedAtMs`. Returns null when the share is not
   * known.
   */
  headroom(limitedAtMs: number, nowMs: number): number | null {
    if (limitedAtMs >= this.#headroomAtMs && nowMs - limitedAtMs < headroomFreshMs) return 0
    return nowMs - this.#headroomAtMs < headroomFreshMs ? this.#headroom : null
  }
}

/** Moves an entry to the end of the map, and deletes the first entry when there are too many. */
function keepLatest<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= foundersKept) return
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}
