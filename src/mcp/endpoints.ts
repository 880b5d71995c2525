import { z } from 'zod'
import { endpointOf } from '../platform/endpoint.ts'
import type { CardDocuments } from './documents/card-documents.ts'
import { cardMediaType, serverCardShape } from './documents/server-card.ts'

/** The services that these endpoints need from composition/gateway.ts. */
export interface McpCardServices {
  readonly mcpCard: CardDocuments
}

const row = endpointOf<McpCardServices>()

/** Headers of documents that every web page may read. Caches keep them for an hour and revalidate them by ETag. */
const publicHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': 'content-type, if-none-match',
  'access-control-expose-headers': 'etag',
  'cache-control': 'public, max-age=3600',
}

const conditional = z.object({ 'if-none-match': z.string().optional() })

/** The endpoints that say where the MCP server is. `POST /mcp` itself is not among them, because it uses JSON-RPC. */
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
    handle: ({ mcpCard }, { headers }, call) => mcpCard.card.reply(call.baseUrl, headers['if-none-match'], 'application/json', publicHeaders),
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
    handle: ({ mcpCard }, { headers }, call) => mcpCard.card.reply(call.baseUrl, headers['if-none-match'], cardMediaType, publicHeaders),
  }),
  serverCardAlias: row({
    at: 'GET /.well-known/mcp-server-card',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'The same server card, for readers that know only the host.',
    input: { headers: conditional },
    output: { media: cardMediaType },
    errors: [],
    handle: ({ mcpCard }, { headers }, call) => mcpCard.card.reply(call.baseUrl, headers['if-none-match'], cardMediaType, publicHeaders),
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
    handle: ({ mcpCard }, { headers }, call) => mcpCard.catalog.reply(call.baseUrl, headers['if-none-match'], 'application/ai-catalog+json', publicHeaders),
  }),
} as const
