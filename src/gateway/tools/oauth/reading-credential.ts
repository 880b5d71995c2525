import { GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { AuthKind, ToolCredential } from '../registry/callable-tool.ts'
import { openCredential, type SealedCredential } from '../registry/tool-credential.ts'
import type { ToolTokens } from './connections/tool-tokens.ts'
import { bearerHeader } from './server-oauth.ts'

/** The credential with which the gateway reads the tools of a server, or why there is none. */
export type ReadingCredential =
  | { readonly ok: true; readonly header: ToolCredential | null }
  | { readonly ok: false; readonly error: 'credential' | 'issuer' | 'connection_required'; readonly message: string }

export interface ReadingCredentialsDeps {
  readonly sealer: Sealer
  readonly tokens: Pick<ToolTokens, 'of' | 'reading' | 'usable'>
}

/**
 * Finds the credential with which the tools of a server are read: its header, the token of the organisation, or the token of the owner or admin who connected
 * first. The approved definitions are those that this credential shows.
 */
export class ReadingCredentials {
  readonly #deps: ReadingCredentialsDeps
  constructor(deps: ReadingCredentialsDeps) {
    this.#deps = deps
  }

  /** Returns the credential. Throws the reason of the signal. */
  async of(orgId: number, server: SealedCredential & { readonly authKind: AuthKind }, signal: CancelSignal): Promise<ReadingCredential> {
    const { sealer, tokens } = this.#deps
    if (server.authKind === 'none' || server.authKind === 'header') return headerOf(sealer, orgId, server)
    const ofOrg = server.authKind === 'client_credentials'
    const held = ofOrg ? await tokens.of(orgId, server.id, null) : await tokens.reading(orgId, server.id)
    if (held === null) return ofOrg ? noToken('send "auth" again') : notConnected
    try {
      const { access } = await tokens.usable(held, signal)
      return access === null ? noToken('send "auth" again') : { ok: true, header: bearerHeader(access.reveal()) }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return error.code === 'tool_connection_required' ? notConnected : noToken('try again later, or send "auth" again')
    }
  }
}

function headerOf(sealer: Sealer, orgId: number, server: SealedCredential): ReadingCredential {
  try {
    return { ok: true, header: openCredential(sealer, orgId, server) }
  } catch {
    return { ok: false, error: 'credential', message: 'its header cannot be opened any more: send "auth" again' }
  }
}

const noToken = (advice: string): ReadingCredential => ({ ok: false, error: 'issuer', message: `the issuer of its tokens gave none: ${advice}` })
const notConnected: ReadingCredential = {
  ok: false,
  error: 'connection_required',
  message: 'no owner or admin has a connection with it: connect with POST /me/tool-servers/{id}/connect',
}
