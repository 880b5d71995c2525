import { z } from 'zod'
import { cursorCharsMax } from '../../../../platform/db/list-cursor.ts'
import { endpointOf, reply } from '../../../../platform/endpoint.ts'
import { fail } from '../../../../platform/errors.ts'
import { pageHeaders, publicPage, replyWithPage } from '../../../../platform/public-page.ts'
import type { Principal, SessionPrincipal } from '../../../../platform/security/principal.ts'
import { serverIdOf, serverPath } from '../../registry/servers/tool-server-views.ts'
import type { ToolServers } from '../../registry/servers/tool-servers.ts'
import { clientDocument } from '../client-document.ts'
import { connectedPage } from './connected-page.ts'
import type { ListedConnection } from './connection-queries.ts'
import type { ToolConnections } from './tool-connections.ts'

const row = endpointOf<{ toolServers: ToolServers; toolConnections: ToolConnections }>()

const requires = ({ toolServers }: { toolServers: ToolServers }): void => toolServers.requireEnabled()
const tag = 'tools'
const pageMax = 100
const documentMaxAgeSeconds = 3600

const connectionView = z.object({
  id: z.string(),
  server_id: z.string(),
  server: z.string().describe('The slug of the server.'),
  user_id: z.int(),
  email: z.string(),
  issuer: z.string().describe('Who gave the tokens. They are never shown.'),
  scopes: z.array(z.string()),
  state: z.enum(['connected', 'needs_consent']).describe('needs_consent: the person must connect again.'),
  expires_at: z.string().nullable().describe('ISO 8601, UTC: the end of the present access token, which is renewed before. Null: it names no end.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

const viewOf = (of: ListedConnection): z.output<typeof connectionView> => ({
  id: of.id,
  server_id: of.serverId,
  server: of.slug,
  user_id: of.userId,
  email: of.email,
  issuer: of.issuer,
  scopes: of.scopes.split(' ').filter(scope => scope !== ''),
  state: of.needsConsentSince === null ? 'connected' : 'needs_consent',
  expires_at: of.expiresAt?.toISOString() ?? null,
  created_at: of.createdAt.toISOString(),
})

export const toolConnectionEndpoints = {
  connectToolServer: row({
    at: 'POST /me/tool-servers/{id}/connect',
    auth: 'session',
    access: {},
    tag,
    summary: 'Begins a connection of the signed-in person with a server of kind oauth_user: the address at the issuer where the person consents.',
    input: { path: serverPath },
    output: z.object({
      authorization_url: z.string().describe('Open it in the browser of this session. It works once.'),
      expires_at: z.string().describe('ISO 8601, UTC: in 10 minutes.'),
    }),
    status: 201,
    errors: ['forbidden', 'unavailable', 'bad_request', 'not_found', 'rate_limit_exceeded'],
    requires,
    async handle({ toolConnections }, { path }, call) {
      const { url, expiresAt } = await toolConnections.begin(personOf(call.principal), serverIdOf(path), call.signal)
      return { authorization_url: url.href, expires_at: expiresAt.toISOString() }
    },
  }),

  finishToolConnection: row({
    at: 'GET /me/tool-connections/callback',
    auth: 'session',
    hasEffect: true,
    access: { noAgents: true },
    tag,
    summary: 'The browser comes back from the issuer: keeps the tokens of the person, sealed, and shows that the connection works.',
    input: { query: z.record(z.string(), z.string().max(8192)) },
    output: { media: 'text/html' },
    errors: ['forbidden', 'unavailable', 'bad_request', 'not_found'],
    requires,
    handle: async ({ toolConnections }, { query }, call) =>
      connectedPage((await toolConnections.finish(personOf(call.principal), query, call.signal)).slug, call.baseUrl),
  }),

  toolClientDocument: row({
    at: 'GET /oauth/tool-client',
    auth: 'public',
    access: {},
    tag,
    summary: 'What this gateway is for the issuers of tokens for MCP servers: a client-id metadata document. Its address is the client id.',
    input: { headers: pageHeaders },
    output: z.object({
      client_id: z.string(),
      client_name: z.string(),
      client_uri: z.string(),
      redirect_uris: z.array(z.string()),
      grant_types: z.array(z.string()),
      response_types: z.array(z.string()),
      token_endpoint_auth_method: z.string(),
    }),
    errors: ['unavailable'],
    requires,
    handle: (_services, { headers }, call) => replyWithPage(publicPage(clientDocument(call.baseUrl), documentMaxAgeSeconds), headers['if-none-match']),
  }),

  listToolConnections: row({
    at: 'GET /me/tool-connections',
    auth: 'session',
    access: { noAgents: true },
    tag,
    summary:
      "The person's own connections with MCP servers, oldest first. With everybody=true, an owner or admin sees those of all members. No token is shown.",
    input: {
      query: z.object({
        server_id: z.string().max(100).optional().describe('Only the connections with this server.'),
        everybody: z.enum(['true', 'false']).default('false').describe('true: of all members. It needs the role owner or admin.'),
        limit: z.coerce.number().int().min(1).max(pageMax).default(pageMax).describe(`Connections of a page, at most ${pageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ connections: z.array(connectionView), next_cursor: z.string().nullable().describe('Null behind the last page.') }),
    errors: ['forbidden', 'unavailable', 'bad_request'],
    requires,
    async handle({ toolConnections }, { query }, call) {
      const { orgId, userId, role } = personOf(call.principal)
      const isEverybody = query.everybody === 'true'
      if (isEverybody && role === 'member') throw fail('forbidden', { message: 'The connections of everybody need the role owner or admin.' })
      const page = await toolConnections.list(orgId, {
        userId: isEverybody ? null : userId,
        serverId: query.server_id === undefined ? null : serverIdOf({ id: query.server_id }),
        after: query.cursor === undefined ? null : serverIdOf({ id: query.cursor }),
        limit: query.limit,
      })
      return { connections: page.connections.map(viewOf), next_cursor: page.next }
    },
  }),

  endToolConnection: row({
    at: 'DELETE /me/tool-connections/{id}',
    auth: 'session',
    access: {},
    tag,
    summary: 'Ends a connection, also one of another member for an owner or admin. Running calls with it end, and its tokens are revoked at the issuer.',
    input: { path: z.object({ id: z.string().max(100).describe('Id of the connection.') }) },
    output: z.object({ ok: z.literal(true) }),
    errors: ['forbidden', 'unavailable', 'not_found'],
    requires,
    async handle({ toolConnections }, { path }, call) {
      await toolConnections.end(personOf(call.principal), serverIdOf(path))
      return reply.json({ ok: true })
    },
  }),
}

/** A connection belongs to a person, so only a session of a person makes or ends one. */
function personOf(principal: Principal): SessionPrincipal {
  if (principal.kind !== 'session') throw fail('forbidden', { message: 'This needs the session of a person.' })
  return principal
}
