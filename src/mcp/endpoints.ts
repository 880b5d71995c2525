import { createHash } from 'node:crypto'
import { z } from 'zod'
import { endpointOf, type Reply, reply } from '../platform/endpoint.ts'
import { aiCatalog, cardMediaType, serverCard, serverCardShape } from './server-card.ts'

/** What these rows need of app.ts: the settings that stand in the card. */
export interface McpCardServices {
  readonly mcpCard: { readonly serviceId: string; readonly version: string }
}

const row = endpointOf<McpCardServices>()

/** Readable from any page, kept an hour, revalidated by ETag. */
const publicHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': 'content-type, if-none-match',
  'access-control-expose-headers': 'etag',
  'cache-control': 'public, max-age=3600',
}

const conditional = z.object({ 'if-none-match': z.string().optional() })

/** A public document with its ETag; 304 when the reader has it already. */
function document(value: unknown, contentType: string, ifNoneMatch: string | undefined): Reply {
  const text = JSON.stringify(value, null, 2)
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  const headers = { ...publicHeaders, etag }
  const known = ifNoneMatch?.split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return known?.includes(etag) ? reply.empty(304, headers) : reply.text(text, contentType, headers)
}

/** The rows that say where the MCP server is. `POST /mcp` itself is not a row: it speaks JSON-RPC. */
export const mcpEndpoints = {
  wellKnownServerCard: row({
    at: 'GET /.well-known/mcp/server-card.json',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'Server card of the MCP server: its URL and how to sign in.',
    input: { headers: conditional },
    output: serverCardShape,
    errors: [],
    handle: ({ mcpCard }, { headers }, call) =>
      document(serverCard(call.baseUrl, mcpCard.serviceId, mcpCard.version), 'application/json', headers['if-none-match']),
  }),
  serverCard: row({
    at: 'GET /mcp/server-card',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'The same server card at the place that SEP-2127 reserves.',
    input: { headers: conditional },
    output: { media: cardMediaType },
    errors: [],
    handle: ({ mcpCard }, { headers }, call) => document(serverCard(call.baseUrl, mcpCard.serviceId, mcpCard.version), cardMediaType, headers['if-none-match']),
  }),
  serverCardAlias: row({
    at: 'GET /.well-known/mcp-server-card',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'The same server card, where readers look who know only the host.',
    input: { headers: conditional },
    output: { media: cardMediaType },
    errors: [],
    handle: ({ mcpCard }, { headers }, call) => document(serverCard(call.baseUrl, mcpCard.serviceId, mcpCard.version), cardMediaType, headers['if-none-match']),
  }),
  aiCatalog: row({
    at: 'GET /.well-known/ai-catalog.json',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'AI catalog that points to the server card.',
    input: { headers: conditional },
    output: { media: 'application/ai-catalog+json' },
    errors: [],
    handle: ({ mcpCard }, { headers }, call) =>
      document(aiCatalog(call.baseUrl, serverCard(call.baseUrl, mcpCard.serviceId, mcpCard.version)), 'application/ai-catalog+json', headers['if-none-match']),
  }),
} as const
