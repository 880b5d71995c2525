/** Calls whose caller has left while a provider works on them: how many are followed, and for how long. */

/** How long a provider may be silent that is read on for the usage of a call whose caller has left. */
export const readOnMs = 20_000
/** How long it is read on at most, while it goes on sending; and how long a reply that comes whole is waited for. */
export const readOnLongestMs = 300_000
/** Most bytes that are read of it meanwhile. */
export const readOnMaxBytes = 8 * 1024 * 1024
/** Most calls of one process that are followed behind their callers. */
export const departuresMax = 256
/** Most of one organisation, so that it cannot take the places of all others. */
export const departuresPerOrgMax = 64

/** The places for calls that are followed. One for a process. */
export class Departures {
  #count = 0
  readonly #byOrg = new Map<number, number>()

  /** A place, as the function that gives it back (call it once); null when there is none: then what the call used is estimated. */
  take(orgId: number): (() => void) | null {
    const ofOrg = this.#byOrg.get(orgId) ?? 0
    if (this.#count >= departuresMax || ofOrg >= departuresPerOrgMax) return null
    this.#count++
    this.#byOrg.set(orgId, ofOrg + 1)
    return () => {
      this.#count--
      const left = (this.#byOrg.get(orgId) ?? 1) - 1
      if (left > 0) this.#byOrg.set(orgId, left)
      else this.#byOrg.delete(orgId)
    }
  }

  /** Calls that are followed now. */
  get count(): number {
    return this.#count
  }
}
