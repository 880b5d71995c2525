/**
 * The server card says where the MCP server is and how to sign in. It needs no credential. One document serves two drafts: it has the fields of
 * SEP-2127, and `serverInfo`, `transport` and `authentication` of the older SEP-1649, because scanners still look for them.
 */
import { z } from 'zod'
import { mcpIdentity } from './instructions.ts'

/** The supported versions, newest first: the discover era, then the initialize era. */
const protocolVersions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const nameValue = z.looseObject({
  name: z.string().min(1),
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  placeholder: z.string().optional(),
})

/**
 * The published rules of a card, for the fields that this server uses. They bound lengths and the form of the name, forbid version ranges, and
 * require absolute remote URLs.
 */
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

/**
 * Returns the card of the gateway at `baseUrl`. `baseUrl` comes from the configuration, never from a Host header, and has no trailing slash. The
 * function is pure.
 */
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

/**
 * Returns the host in reverse order: `https://gw.acme.com` becomes `com.acme.gw`. An IP address keeps its order, loses its brackets, and gets hyphens
 * in place of colons. A host name without dots does not change.
 */
function reverseDns(baseUrl: string): string {
  const host = new URL(baseUrl).hostname
  if (/^[\d.]+$/.test(host) || host.startsWith('[')) return host.replace(/[[\]]/g, '').replace(/:/g, '-')
  return host.split('.').reverse().join('.')
}

/**
 * Returns the AI catalog that contains the card. `identifier` has the URN form that catalogs use: the publisher's domain, then the name of the
 * server.
 */
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
