/** The limits of followed calls. A call is followed when its caller has left and the gateway reads the provider's reply on to learn the usage. */
import { Shares } from '../../../platform/shares.ts'

/** The longest silence of a followed provider. */
export const readOnMs = 20_000
/** The longest time for which a provider that still sends is followed. A reply that comes whole is waited for as long. */
export const readOnLongestMs = 300_000
/** The most bytes that are read in that time. */
export const readOnMaxBytes = 8 * 1024 * 1024
/** The longest time for reading what a provider sent while its caller did not read. */
export const arrivedMostMs = 5_000
/** When no byte comes for this time, everything that a provider had sent is read. */
export const arrivedQuietMs = 50
/** The most followed calls of one process. */
export const departuresMax = 256
/** The percentage of the free places that the organisations of one founder may have: 64 of a process without other followed calls. */
const founderPercent = 28

/** The places for the followed calls of one process. They are divided by founder. */
export class Departures {
  readonly #places = new Shares<string>(departuresMax, founderPercent)
  readonly #founderOf: (orgId: number) => string

  /** `founderOf` returns the founder of an organisation. Left out: each organisation has a founder of its own. */
  constructor(founderOf: (orgId: number) => string = String) {
    this.#founderOf = founderOf
  }

  /** Takes a place. Returns the function that gives it back, to be called once. Null when there is no place; the call's usage is then estimated. */
  take(orgId: number): (() => void) | null {
    const founder = this.#founderOf(orgId)
    return this.#places.take(founder) === null ? () => this.#places.give(founder) : null
  }

  /** The number of followed calls. */
  get count(): number {
    return this.#places.held
  }
}
