/**
 * Remembers organisations whose store did not answer a regular job. The jobs skip such an organisation for a while, and longer after each failure, so that
 * many silent stores do not delay the others.
 */
const restMsMin = 15_000
const restMsMax = 60 * 60_000

/** The state is in the memory of one process. Times are those of the injected clock, in milliseconds. */
export class RestingStores {
  readonly #rests = new Map<number, { readonly untilMs: number; readonly restMs: number }>()

  /** Records a failure. The first pause is 15 s. Each further failure doubles the pause, up to an hour. */
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

  /** Returns the ids of the organisations to skip now. An entry whose pause ended more than an hour ago is forgotten. */
  at(nowMs: number): number[] {
    for (const [orgId, { untilMs }] of this.#rests) if (untilMs + restMsMax < nowMs) this.#rests.delete(orgId)
    return [...this.#rests].flatMap(([orgId, { untilMs }]) => (untilMs > nowMs ? [orgId] : []))
  }
}
