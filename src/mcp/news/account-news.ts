/**
 * News of the account resources for one listener. Nothing in the gateway tells when a budget moves, for it moves with every call on
 * every process; so what a listener subscribed to is read anew from time to time and compared.
 */
import type { Clock } from '../../platform/clock.ts'
import { type AccountResource, accountResources } from '../resources/resources.ts'
import type { RowReader } from '../row-reader.ts'
import type { ChangeSink } from '../surface.ts'
import type { SurfaceRows } from '../surface-rows.ts'

/** How late a change of an account resource is told at most, and how often one is told at most. */
export const accountPollMs = 10_000

export interface AccountNewsDeps {
  readonly clock: Clock
  readonly rows: SurfaceRows
  /** Reads without a count against the caller's rate: the gateway looks, not the caller. */
  readonly reader: RowReader
}

export class AccountNews {
  readonly #deps: AccountNewsDeps
  readonly #sink: ChangeSink
  readonly #known = new Map<AccountResource, string | null>()
  readonly #stopped = new AbortController()
  #isLooking = false

  constructor(deps: AccountNewsDeps, sink: ChangeSink) {
    this.#deps = deps
    this.#sink = sink
  }

  /** Takes the URIs of account resources that the caller may read; which. */
  take(uris: readonly string[]): string[] {
    const { reader, rows } = this.#deps
    for (const resource of accountResources) if (uris.includes(resource.uri) && reader.may(resource.rowOf(rows))) this.#known.set(resource, null)
    return [...this.#known.keys()].map(({ uri }) => uri)
  }

  /** Looks from now on, until the returned function is called. */
  async listen(): Promise<() => void> {
    if (this.#known.size === 0) return () => undefined
    await this.#look()
    const stop = this.#deps.clock.every(accountPollMs, () => void this.#look())
    return () => {
      stop()
      this.#stopped.abort()
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    for (const [resource, before] of this.#known) {
      const now = await this.#read(resource)
      if (now === null || now === before) continue
      this.#known.set(resource, now)
      if (before !== null) this.#sink.tell({ kind: 'resource', uri: resource.uri })
    }
    this.#isLooking = false
  }

  /** Null when it cannot be read now; the next look tries again. */
  async #read(resource: AccountResource): Promise<string | null> {
    const { reader, rows } = this.#deps
    try {
      return JSON.stringify(await reader.json(resource.rowOf(rows), {}, this.#stopped.signal))
    } catch {
      return null
    }
  }
}
