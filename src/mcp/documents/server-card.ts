/**
 * The server card: where the MCP server is and how to sign in, readable without a credential. One document serves two drafts: the
 * fields of SEP-2127, and `serverInfo`, `transport`, `authentication` of the older SEP-1649, which scanners still look for.
 */
import { z } from 'zod'
import { mcpIdentity } from './instructions.ts'

/** Newest first: the discover era, then the initialize era. */
const protocolVersions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const nameValue = z.looseObject({
  name: z.string().min(1),
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  placeholder: z.string().optional(),
})

/** The published rules of a card, as far as we use its fields: lengths, name form, no version range, absolute remote URL. */
export const serverCardShape = z.looseObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  version: z
    .string()
    .min(1)
    .max(255)
    .regex(/^[^\s^~<>=*|]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  websiteUrl: z.url(),
  remotes: z
    .array(
      z.looseObject({
        type: z.literal('streamable-http'),
        url: z.url({ protocol: /^https?$/ }),
        headers: z.array(nameValue),
        supportedProtocolVersions: z.array(z.iso.date()).min(1),
      }),
    )
    .min(1),
  serverInfo: z.looseObject({ name: z.string(), version: z.string() }),
  transport: z.looseObject({ type: z.literal('streamable-http'), endpoint: z.literal('/mcp') }),
  authentication: z.looseObject({ required: z.literal(true), schemes: z.tuple([z.literal('bearer')]) }),
})

export type ServerCard = z.output<typeof serverCardShape>

/** The card of the gateway at `baseUrl` (from the configuration, never from a Host header; no trailing slash). Pure. */
export function serverCard(baseUrl: string, serviceId: string, version: string): ServerCard {
  const name = `${reverseDns(baseUrl)}/${serviceId.replace(/[^a-zA-Z0-9._-]/g, '-').slice(0, 60)}`
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name,
    version,
    title: mcpIdentity(serviceId, version).title.slice(0, 100),
    description: 'Chat with any routed model, share memory between agents, see usage and what budget is left.',
    websiteUrl: baseUrl,
    remotes: [
      {
        type: 'streamable-http',
        url: `${baseUrl}/mcp`,
        headers: [
          {
            name: 'Authorization',
            description: 'Bearer and an API key (br-…) or an agent token.',
            isRequired: true,
            isSecret: true,
            placeholder: 'Bearer br-…',
          },
        ],
        supportedProtocolVersions: protocolVersions,
      },
    ],
    serverInfo: { name: serviceId, version },
    transport: { type: 'streamable-http', endpoint: '/mcp' },
    authentication: { required: true, schemes: ['bearer'] },
  }
}

/** `https://gw.acme.com` is `com.acme.gw`; an address or a bare name stays as it is, without brackets and colons. */
function reverseDns(baseUrl: string): string {
  const host = new URL(baseUrl).hostname
  if (/^[\d.]+$/.test(host) || host.startsWith('[')) return host.replace(/[[\]]/g, '').replace(/:/g, '-')
  return host.split('.').reverse().join('.')
}

/** The AI catalog that points at the card; `identifier` is the URN form that catalogs use: publisher's domain, then our name. */
export function aiCatalog(baseUrl: string, card: ServerCard): Record<string, unknown> {
  return {
    specVersion: '1.0',
    entries: [
      {
        identifier: `urn:air:${new URL(baseUrl).hostname}:${card.name.split('/')[1] ?? 'mcp'}`,
        displayName: card.title,
        description: card.description,
        type: cardMediaType,
        url: `${baseUrl}/mcp/server-card`,
      },
    ],
  }
}

/** Media type of a card. */
export const cardMediaType = 'application/mcp-server-card+json'
