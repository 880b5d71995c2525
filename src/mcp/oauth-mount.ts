/**
 * The second way to the MCP server: /orgs/{id}/mcp, an OAuth protected resource for clients that only know how to log in. It exists when the operator
 * names an issuer. It has its own URL, because a client that learns of OAuth drops the bearer that its user configured. Decision 0280 says why.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { fail } from '../platform/errors.ts'
import type { AgentPrincipal, BearerPrincipal } from '../platform/security/principal.ts'
import { challenged } from './transport/guard.ts'
import type { McpCaller, McpMount } from './transport/transport.ts'

/** Sign-in at another issuer; the agents domain provides it. */
export interface ExternalSignInPort {
  readonly issuer: string
  /** URL and audience of the organisation's resource. */
  resourceOf(orgId: number): string
  /** What a client asks the issuer for. */
  readonly scope: string
  /** Whether a bearer says that it is of this issuer. */
  isOfIssuer(token: string): boolean
  principalOf(token: string, orgId: number, call: { readonly sourceIp: string | null; readonly requestId: string }): Promise<AgentPrincipal>
}

export interface OAuthMountDeps {
  readonly signIn: ExternalSignInPort
  readonly baseUrl: () => string
  /** Names the server in challenges (setting SERVICE_ID). */
  readonly realm: string
  /** The bearer of the request, or null. */
  bearerOf(headers: IncomingHttpHeaders): string | null
  /** Keys and agent tokens of the gateway itself, which are accepted here too. Throws 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
}

/** The path of the protected resource's metadata (RFC 9728: the well-known part comes before the path). */
export function metadataUrl(baseUrl: string, orgId: number): string {
  return `${baseUrl}/.well-known/oauth-protected-resource/orgs/${orgId}/mcp`
}

/** The mount of one organisation. */
export function oauthMount(orgId: number, deps: OAuthMountDeps): McpMount {
  const parameters = `resource_metadata="${metadataUrl(deps.baseUrl(), orgId)}", scope="${deps.signIn.scope}"`
  return {
    async authenticate(headers, caller) {
      const token = deps.bearerOf(headers)
      if (token === null) throw fail('invalid_api_key', { message: 'No token came. Sign in at the issuer that the metadata of this resource names.' })
      if (deps.signIn.isOfIssuer(token)) return deps.signIn.principalOf(token, orgId, idOf(caller))
      const principal = await deps.authenticate(headers)
      // The URL of another organisation does not exist for this caller.
      if (principal.orgId !== orgId) throw fail('not_found')
      return principal
    },
    challenge(error, headers) {
      if (error.status === 401) return challenged(error, deps.realm, `${parameters}${deps.bearerOf(headers) === null ? '' : ', error="invalid_token"'}`)
      return error.errorName === 'forbidden' ? challenged(error, deps.realm, `${parameters}, error="insufficient_scope"`) : error
    },
  }
}

const idOf = ({ requestId, clientIp }: McpCaller) => ({ requestId, sourceIp: clientIp() || null })
