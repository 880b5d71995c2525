/** Places of one process that founders of organisations share: open connections and streamed replies under way. */
import { fail, type GatewayError } from '../../platform/errors.ts'
import { type NoPlace, Shares } from '../../platform/shares.ts'

/** When a caller that found no place may come back. */
const retryAfterSeconds = 5

/** What callers are told of a kind of places. */
export interface PlaceKind {
  /** Plural, as in a sentence. */
  readonly what: string
  /** The setting that bounds all of them. */
  readonly setting: string
}

export const streamPlaces: PlaceKind = { what: 'streamed replies', setting: 'STREAMS_MAX' }
export const connectionPlaces: PlaceKind = { what: 'connections', setting: 'CONNECTIONS_MAX' }

/** The refusal that names the bound. */
export function noPlace({ what, setting }: PlaceKind, why: NoPlace, headers: Readonly<Record<string, string>> = {}): GatewayError {
  const message =
    why === 'share'
      ? `You have as many ${what} open as your organisation, with the others of its founder, or your address may have in this process beside others (${setting}, ORG_SHARE_PERCENT). End one, or try again shortly.`
      : `This process has as many ${what} open as it takes (${setting}). Try again shortly.`
  return fail('places_taken', { message, retryAfterSeconds, headers, extra: { limit_name: setting, ...(why === 'share' ? { scope: 'org' } : {}) } })
}

/** Streamed replies under way; MCP messages count too, because each may be answered as a stream. */
export class StreamPlaces {
  readonly shares: Shares<string>
  readonly #founderOf: (orgId: number) => string

  /** `founderOf` says who founded an organisation. Left out: each organisation has a founder of its own. */
  constructor(total: number, percent: number, founderOf: (orgId: number) => string = String) {
    this.#founderOf = founderOf
    this.shares = new Shares(total, percent)
  }

  /** Takes a place; what comes back gives it back, once. Throws `places_taken`. */
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
