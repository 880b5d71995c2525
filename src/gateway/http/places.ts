/** Places of one process that founders of organisations share: open connections and running streamed replies. */
import { fail, type GatewayError } from '../../platform/errors.ts'
import { type NoPlace, Shares } from '../../platform/shares.ts'

/** The `retry-after` of the refusal when no place is free. */
const retryAfterSeconds = 5

/** The words of an error message about one kind of places. */
export interface PlaceKind {
  /** A plural noun that fits into a sentence. */
  readonly what: string
  /** The setting that bounds all places of this kind. */
  readonly setting: string
}

export const streamPlaces: PlaceKind = { what: 'streamed replies', setting: 'STREAMS_MAX' }
export const connectionPlaces: PlaceKind = { what: 'connections', setting: 'CONNECTIONS_MAX' }

/** Returns the refusal. Its message names the setting that bounds the places. */
export function noPlace({ what, setting }: PlaceKind, why: NoPlace, headers: Readonly<Record<string, string>> = {}): GatewayError {
  const message =
    why === 'share'
      ? `You have as many ${what} open as your organisation, with the others of its founder, or your address may have in this process beside others (${setting}, ORG_SHARE_PERCENT). End one, or try again shortly.`
      : `This process has as many ${what} open as it takes (${setting}). Try again shortly.`
  return fail('places_taken', { message, retryAfterSeconds, headers, extra: { limit_name: setting, ...(why === 'share' ? { scope: 'org' } : {}) } })
}

/** Places for running streamed replies. MCP messages count, too, because each may be answered as a stream. */
export class StreamPlaces {
  readonly shares: Shares<string>
  readonly #founderOf: (orgId: number) => string

  /** `founderOf` returns the founder of an organisation. Without it, each organisation has a founder of its own. */
  constructor(total: number, percent: number, founderOf: (orgId: number) => string = String) {
    this.#founderOf = founderOf
    this.shares = new Shares(total, percent)
  }

  /** Takes a place and returns the function that gives it back. Calling that function again does nothing. Throws `places_taken`. */
  take(orgId: number): () => void {
    const founder = this.#founderOf(orgId)
    const why = this.shares.take(founder)
    if (why !== null) throw noPlace(streamPlaces, why)
    let isHeld = true
    return () => {
      if (isHeld) this.shares.give(founder)
      isHeld = false
    }
  }
}
