/**
 * Organisations whose store did not answer regular work. It leaves them alone for a while, longer after each failure, so that rows of many
 * silent stores cannot keep it from the rows of others.
 */
const restMsMin = 15_000
const restMsMax = 60 * 60_000

/** In the memory of one process; times are those of the injected clock, in milliseconds. */
export class RestingStores {
  readonly #rests = new Map<number, { readonly untilMs: number; readonly restMs: number }>()

  /** Notes a failure: 15 s of rest, twice as long as the last one after another failure, at most an hour. */
  failed(orgId: number, nowMs: number): void {
    const last = this.#rests.get(orgId)
    if (last !== undefined && last.untilMs > nowMs) return
    const restMs = last === undefined ? restMsMin : Math.min(last.restMs * 2, restMsMax)
    this.#rests.set(orgId, { untilMs: nowMs + restMs, restMs })
  }

  /** The next failure is the first one again. */
  worked(orgId: number): void {
    this.#rests.delete(orgId)
  }

  /** Ids of the organisations that rest. One that nobody has asked for an hour after its rest is forgotten. */
  at(nowMs: number): number[] {
    for (const [orgId, { untilMs }] of this.#rests) if (untilMs + restMsMax < nowMs) this.#rests.delete(orgId)
    return [...this.#rests].flatMap(([orgId, { untilMs }]) => (untilMs > nowMs ? [orgId] : []))
  }
}
