import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { fail } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { CallableTool, OrgTools, ToolCredential } from '../registry/callable-tool.ts'
import type { HeldConnection } from './connections/held-connection.ts'
import type { ToolTokens } from './connections/tool-tokens.ts'
import { covers } from './issuer/issuer-metadata.ts'
import { bearerHeader } from './server-oauth.ts'

/** The credential of one call. */
export interface CallCredential {
  /** Separates the circuits of a server by credential. It contains no token. */
  readonly circuit: string
  /** The connection whose token is sent. Null: a header, or nothing. Its owner of running calls is `tool_connection:<id>`. */
  readonly connectionId: string | null
  /** Returns the header to send. Renews a token whose end is near. Throws the errors of `ToolTokens.usable`. */
  header(signal: CancelSignal): ToolCredential | null | Promise<ToolCredential | null>
  /** Returns another header after the server answered 401 to the first one. Null: there is none, so the call fails. */
  another(signal: CancelSignal): Promise<ToolCredential | null>
}

export interface ToolCredentialsDeps {
  readonly clock: Clock
  readonly tokens: Pick<ToolTokens, 'of' | 'usable' | 'renewed'>
  /** The page where a person connects. */
  consoleUrl(): string
}

const connectionsMax = 20_000
/**
 * A token that came after a refused one and is refused too is not replaced in this time. A server that refuses every token would otherwise cost the issuer
 * one for each call.
 */
const refusalPauseMs = 30_000

/** Finds the credential of a call: the header of the server, a token of the organisation, or the token of the person behind the call. */
export class ToolCredentials {
  readonly #deps: ToolCredentialsDeps
  /** The last token of a connection that was replaced after a 401: its version, and the monotonic milliseconds of the 401. */
  readonly #refused: LRUCache<string, { readonly version: number; readonly atMs: number }>

  constructor(deps: ToolCredentialsDeps) {
    this.#deps = deps
    this.#refused = new LRUCache({ max: connectionsMax })
  }

  /**
   * Returns the credential for a call of a tool by somebody. An agent acts with the connection of the user of its key. Throws `tool_connection_required`
   * when that person has none that works. Returns without a promise when nothing has to be loaded. Decision 0831 says why.
   */
  of(
    orgId: number,
    tools: OrgTools,
    { serverId, slug, url }: Pick<CallableTool, 'serverId' | 'slug' | 'url'>,
    userId: number | null,
  ): CallCredential | Promise<CallCredential> {
    const kind = tools.authKind(serverId)
    if (kind === 'none' || kind === 'header') return fixed(serverId, tools.credential(serverId))
    const ofOrg = kind === 'client_credentials'
    if (!ofOrg && userId === null) throw this.#required(slug, serverId, 'This call has no person behind it, and this server takes the token of a person.')
    const held = this.#deps.tokens.of(orgId, serverId, ofOrg ? null : userId)
    const made = (found: HeldConnection | null): CallCredential => {
      if (found === null || (!ofOrg && found.needsConsentSince !== null)) throw this.#required(slug, serverId, ofOrg ? noToken : noConnection)
      // The address and the token come from two caches. A token goes to its own resource only.
      if (!covers(found.resource, url)) throw new CallCutError('tool_server_changed')
      return this.#renewable(found)
    }
    return held instanceof Promise ? held.then(made) : made(held)
  }

  #renewable(held: HeldConnection): CallCredential {
    const { tokens, clock } = this.#deps
    let used = held
    const shown = (now: HeldConnection): ToolCredential | null => {
      used = now
      return now.access === null ? null : bearerHeader(now.access.reveal())
    }
    return {
      circuit: `${held.serverId}\n${held.id}`,
      connectionId: held.id,
      header: async signal => shown(await tokens.usable(held, signal)),
      another: async signal => {
        const atMs = clock.monotonicMs()
        const before = this.#refused.get(held.id)
        const isRecent = before !== undefined && atMs - before.atMs < refusalPauseMs
        if (isRecent && used.version > before.version) return null
        // Concurrent calls with one token all get the next one.
        if (!isRecent) this.#refused.set(held.id, { version: used.version, atMs })
        return shown(await tokens.renewed(used, signal))
      },
    }
  }

  #required(slug: string, serverId: string, message: string) {
    return fail('tool_connection_required', { message, extra: { server: slug, server_id: serverId, console_url: this.#deps.consoleUrl() } })
  }
}

const noConnection =
  'The person behind this call has no connection with the server of this tool. Let the person connect in the console, or with POST /me/tool-servers/{id}/connect.'
const noToken = 'The server of this tool has no token of the organisation. Let an admin send its "auth" again.'

function fixed(serverId: string, header: ToolCredential | null): CallCredential {
  return { circuit: `${serverId}\n${header?.value ?? ''}`, connectionId: null, header: () => header, another: async () => null }
}
