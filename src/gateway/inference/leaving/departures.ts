/** The limits of followed calls. A call is followed when its caller has left and the gateway reads the provider's reply on to learn the usage. */

/** The longest silence of a followed provider. */
export const readOnMs = 20_000
/** The longest time for which a provider that still sends is followed. A reply that comes whole is waited for as long. */
export const readOnLongestMs = 300_000
/** The most bytes that are read in that time. */
export const readOnMaxBytes = 8 * 1024 * 1024
/** The most followed calls of one process. */
export const departuresMax = 256
/** The most followed calls of one organisation, so that it cannot take the places of all others. */
export const departuresPerOrgMax = 64

/** Counts the followed calls of one process, and refuses more than `departuresMax`, or more than `departuresPerOrgMax` of one organisation. */
export class Departures {
  #count = 0
  readonly #byOrg = new Map<number, number>()

  /** Takes a place. Returns the function that gives it back, to be called once. Null when there is no place; the call's usage is then estimated. */
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

  /** The number of followed calls. */
  get count(): number {
    return this.#count
  }
}
