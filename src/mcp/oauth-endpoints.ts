import { z } from 'zod'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { rowId } from '../platform/values/row-id.ts'
import type { ExternalSignInPort } from './oauth-mount.ts'

const row = endpointOf<{
  /** Sign-in with another issuer. Null when the operator has configured no issuer. */
  readonly mcpOAuth: ExternalSignInPort | null
}>()

export const mcpOAuthEndpoints = {
  protectedResource: row({
    at: 'GET /.well-known/oauth-protected-resource/orgs/{id}/mcp',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'Where clients of MCP sign in for an organisation (RFC 9728), when the operator has named an issuer.',
    input: { path: z.object({ id: z.string() }) },
    output: z.object({
      resource: z.string(),
      authorization_servers: z.array(z.string()),
      scopes_supported: z.array(z.string()),
      bearer_methods_supported: z.array(z.literal('header')),
      resource_name: z.string(),
    }),
    errors: ['not_found'],
    handle({ mcpOAuth }, { path }) {
      const id = rowId(path.id)
      if (mcpOAuth === null || id === null) throw fail('not_found', { message: 'There is no OAuth here. Send an API key or agent token to /mcp.' })
      const metadata = {
        resource: mcpOAuth.resourceOf(id),
        authorization_servers: [mcpOAuth.issuer],
        scopes_supported: [mcpOAuth.scope],
        bearer_methods_supported: ['header' as const],
        resource_name: 'Brigade MCP server',
      }
      return reply.json(metadata, 200, { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })
    },
  }),
} as const
