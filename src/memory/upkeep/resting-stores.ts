/**
 * Organisations whose store did not answer regular work. The work skips them for a while, longer after each failure, so that rows of many silent
 * stores do not delay the rows of others.
 */
const restMsMin = 15_000
const restMsMax = 60 * 60_000

/** The state is in the memory of one process. Times are those of the injected clock, in milliseconds. */
export class RestingStores {
  readonly #rests = new Map<number, { readonly untilMs: number; readonly restMs: number }>()

  /** Records a failure. The rest takes 15 s, and twice as long as the last one after another failure, but at most an hour. */
  failed(orgId: number, nowMs: number): void {
    const last = this.#rests.get(orgId)
    if (last !== undefined && last.untilMs > nowMs) return
    const restMs = last === undefined ? restMsMin : Math.min(last.restMs * 2, restMsMax)
    this.#rests.set(orgId, { untilMs: nowMs + restMs, restMs })
  }

  /** Forgets the failures, so that the next failure counts as the first one. */
  worked(orgId: number): void {
    this.#rests.delete(orgId)
  }

  /** Returns the ids of the organisations that rest. An entry whose rest ended more than an hour ago is forgotten. */
  at(nowMs: number): number[] {
    for (const [orgId, { untilMs }] of this.#rests) if (untilMs + restMsMax < nowMs) this.#rests.delete(orgId)
    return [...this.#rests].flatMap(([orgId, { untilMs }]) => (untilMs > nowMs ? [orgId] : []))
  }
}
