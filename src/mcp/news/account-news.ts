/**
 * Reports changes of the account resources to one listener. The gateway has no event for a changed budget, because every call on every process
 * changes one. The gateway therefore polls the resources that a listener subscribed to, and compares each value with the previous one.
 */
import type { McpRows } from '../mcp-rows.ts'
import { type AccountResource, accountResources } from '../resources/resources.ts'
import type { RowReader } from '../row-reader.ts'
import type { ChangeSink } from '../surface.ts'
import type { AccountPolls } from './account-polls.ts'

export interface AccountNewsDeps {
  readonly polls: AccountPolls
  readonly rows: McpRows
  /** Reads rows without counting against the caller's rate, because the gateway polls and not the caller. */
  readonly reader: RowReader
}

export class AccountNews {
  readonly #deps: AccountNewsDeps
  readonly #sink: ChangeSink
  #resources: readonly AccountResource[] = []
  readonly #stopped = new AbortController()

  constructor(deps: AccountNewsDeps, sink: ChangeSink) {
    this.#deps = deps
    this.#sink = sink
  }

  /** Subscribes to the account resources among these URIs that the caller may read. Returns the URIs of these resources. */
  take(uris: readonly string[]): string[] {
    const { reader, rows } = this.#deps
    this.#resources = accountResources.filter(resource => uris.includes(resource.uri) && reader.may(resource.rowOf(rows)))
    return this.#resources.map(({ uri }) => uri)
  }

  /** Polls until the returned function is called. Throws SurfaceError when there is no place for the poll. */
  async listen(): Promise<() => void> {
    const { polls, reader } = this.#deps
    const { principal } = reader.call
    // The content depends on the credential and, for an agent token, on its scopes. Streams share a poll only when both are equal.
    const owner = principal.kind === 'agent' ? `agent:${principal.agentId}:${principal.keyId}:${principal.scopes.join(' ')}` : `key:${principal.keyId}`
    const stops: (() => void)[] = []
    const stop = (): void => {
      for (const end of stops.splice(0)) end()
      this.#stopped.abort()
    }
    for (const resource of this.#resources) {
      const listener = { read: () => this.#read(resource), notify: () => this.#sink.notify({ kind: 'resource', uri: resource.uri }) }
      try {
        stops.push(await polls.watch(`${owner} ${resource.uri}`, principal.orgId, listener))
      } catch (thrown) {
        stop()
        throw thrown
      }
    }
    return stop
  }

  /** Returns the resource as text. Returns null when the read fails. The next poll tries again. */
  async #read(resource: AccountResource): Promise<string | null> {
    const { reader, rows } = this.#deps
    try {
      return JSON.stringify(await reader.json(resource.rowOf(rows), {}, this.#stopped.signal))
    } catch {
      return null
    }
  }
}
