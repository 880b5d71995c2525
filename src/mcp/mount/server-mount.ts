import { agentIdHeader, agentLabelOf } from '../../gateway/http/rows/call-context.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import type { McpMount } from '../transport/transport.ts'

/** Decides who reaches one server of an organisation. */
export interface MountedServers {
  /** Throws `not_found` unless the caller may use something of the server. */
  require(caller: { readonly principal: BearerPrincipal; readonly agentLabel: string | null }, slug: string): Promise<void>
}

/** Returns the mount of one server: the credentials of /mcp, and 404 for a caller to whom the server does not exist. */
export function serverMount(slug: string, base: McpMount, servers: MountedServers): McpMount {
  return {
    authenticate: (headers, from) => base.authenticate(headers, from),
    enter: (principal, headers) => servers.require({ principal, agentLabel: agentLabelOf(headers[agentIdHeader]) }, slug),
    challenge: (error, headers) => base.challenge(error, headers),
  }
}
