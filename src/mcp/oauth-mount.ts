/**
 * The second URL of the MCP server: /orgs/{id}/mcp, an OAuth protected resource for clients that can only log in. It exists when the operator
 * configures an issuer. Its URL is separate from /mcp, because a client that finds OAuth at a URL drops the bearer that its user configured. Decision
 * 0280 says why.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { fail } from '../platform/errors.ts'
import type { AgentPrincipal, BearerPrincipal } from '../platform/security/principal.ts'
import { challenged } from './transport/guard.ts'
import type { McpCaller, McpMount } from './transport/transport.ts'

/** Sign-in with another issuer. The agents domain provides it. */
export interface ExternalSignInPort {
  readonly issuer: string
  /** Returns the URL of the organisation's resource. It is also the resource's audience. */
  resourceOf(orgId: number): string
  /** The scope that a client requests from the issuer. */
  readonly scope: string
  /** Returns whether a bearer names this issuer. The signature is not checked. */
  isOfIssuer(token: string): boolean
  principalOf(token: string, orgId: number, call: { readonly sourceIp: string | null; readonly requestId: string }): Promise<AgentPrincipal>
}

export interface OAuthMountDeps {
  readonly signIn: ExternalSignInPort
  readonly baseUrl: () => string
  /** The name of the server in challenges (setting SERVICE_ID). */
  readonly realm: string
  /** Returns the bearer of the request, or null. */
  bearerOf(headers: IncomingHttpHeaders): string | null
  /** Authenticates the caller by a key or agent token of the gateway, because this URL accepts both too. Throws 401. */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal>
}

/** Returns the URL of the protected resource's metadata. RFC 9728 puts the well-known part before the path. */
export function metadataUrl(baseUrl: string, orgId: number): string {
  return `${baseUrl}/.well-known/oauth-protected-resource/orgs/${orgId}/mcp`
}

/** Returns the mount of one organisation. */
export function oauthMount(orgId: number, deps: OAuthMountDeps): McpMount {
  const parameters = `resource_metadata="${metadataUrl(deps.baseUrl(), orgId)}", scope="${deps.signIn.scope}"`
  return {
    async authenticate(headers, caller) {
      const token = deps.bearerOf(headers)
      if (token === null) throw fail('invalid_api_key', { message: 'No token came. Sign in at the issuer that the metadata of this resource names.' })
      if (deps.signIn.isOfIssuer(token)) return deps.signIn.principalOf(token, orgId, idOf(caller))
      const principal = await deps.authenticate(headers)
      // This caller gets 404 for the URL of another organisation.
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
