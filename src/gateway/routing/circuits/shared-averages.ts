/**
 * What all organisations together know of one route. One founder alone moves none of it: failures count from the second founder on and
 * each founder for a small part, and of what founders measured differently the lower middle counts. Decision 0465 says why.
 */
import { failureWeight, headroomFreshMs, LatencyAverage, staleMs, ToolCallAverage } from './averages.ts'

/** Founders that must have seen it before something counts for all. */
const foundersMin = 2
/** Most that the failures of one founder add to the shared failure rate: less than the least rate that makes a route unreliable (rank.ts). Ours. */
const founderPartMax = 0.04
/** A part below this is forgotten: about 45 calls after a failure. */
const partMin = 0.001
/** Most founders of a route that are remembered. The one that was heard of longest ago is forgotten. */
const foundersKept = 50
/** For so long a middle is taken as it was computed, when no sample has come. */
const middleFreshMs = 1000

/** The part of the failure average that one founder's failures make up. */
interface FailurePart {
  part: number
  failedAtMs: number
}

/** What founders measured, each for itself; the lower middle of it is what all believe. */
class Middle<Average extends { of(nowMs: number): number | null }> {
  readonly #byFounder = new Map<string, Average>()
  readonly #make: () => Average
  #value: number | null = null
  #computedAtMs = Number.NEGATIVE_INFINITY

  constructor(make: () => Average) {
    this.#make = make
  }

  /** The average of a founder that adds a sample to it. */
  of(founder: string): Average {
    const average = this.#byFounder.get(founder) ?? this.#make()
    this.#computedAtMs = Number.NEGATIVE_INFINITY
    keepLatest(this.#byFounder, founder, average)
    return average
  }

  /** Null when fewer than two founders have measured it lately. */
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

  /** Adds a dial; `latencyMs` null: it failed. A success of anybody makes every founder's part smaller. */
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

  /** 0 to 1; null without a fresh sample. 0 while the failures of the window are those of one founder. */
  failureRate(nowMs: number): number | null {
    if (nowMs - this.#sampledAtMs > staleMs) return null
    if (this.#failures.size < foundersMin) return 0
    const fresh = [...this.#failures.values()].filter(({ failedAtMs }) => nowMs - failedAtMs <= staleMs)
    return fresh.length < foundersMin ? 0 : fresh.reduce((sum, { part }) => sum + Math.min(part, founderPartMax), 0)
  }

  /** The provider has said how much of the rate limit of the platform's key is left: its own word, whoever's call it answered. */
  noteHeadroom(share: number, nowMs: number): void {
    this.#headroom = share
    this.#headroomAtMs = nowMs
  }

  /** The provider has refused a call as one too many. When a second founder sees that within a minute, nothing is left for all. */
  noteLimited(founder: string, nowMs: number): void {
    if (this.#limitedFounder !== null && this.#limitedFounder !== founder && nowMs - this.#limitedAtMs < headroomFreshMs) this.noteHeadroom(0, nowMs)
    this.#limitedFounder = founder
    this.#limitedAtMs = nowMs
  }

  /** What is left of the provider's rate limit for a caller that was refused itself at `limitedAtMs`; null: nobody knows. */
  headroom(limitedAtMs: number, nowMs: number): number | null {
    if (limitedAtMs >= this.#headroomAtMs && nowMs - limitedAtMs < headroomFreshMs) return 0
    return nowMs - this.#headroomAtMs < headroomFreshMs ? this.#headroom : null
  }
}

/** Puts an entry behind all others, and forgets the first one when there are too many. */
function keepLatest<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= foundersKept) return
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}
