/** The shapes of MCP servers in the API. */
import { z } from 'zod'
import { fail } from '../../../../platform/errors.ts'
import { inrFromUinr, uinrFromInr } from '../../../../platform/values/money.ts'
import { type PinState, pinStates } from '../approvals/pin-queries.ts'
import type { ReceivedTool } from '../definitions/received-tools.ts'
import { lookErrors } from '../sync/tool-look.ts'
import type { SyncResult } from '../sync/tool-sync.ts'
import type { ToolServerRow } from './tool-server-queries.ts'
import type { ServerChange, ServerParams } from './tool-server-rules.ts'

const residency = z.enum(['india', 'global'])

const authKind = z.enum(['none', 'header', 'client_credentials', 'oauth_user'])

/** The fields of a registration. */
export const serverBody = z.strictObject({
  name: z.string().describe('1 to 100 characters, for people.'),
  slug: z
    .string()
    .optional()
    .describe(
      'The first part of the names of its tools: a-z, 0-9 and -, at most 16 characters, a letter first. It cannot be changed. Default: made from the name.',
    ),
  url: z
    .string()
    .describe('Address of the MCP endpoint (streamable HTTP), such as https://tools.example.com/mcp. Public https only, unless the operator permits more.'),
  auth: z
    .strictObject({
      kind: authKind,
      header_name: z.string().optional().describe('For kind header, such as Authorization.'),
      header_value: z.string().optional().describe('For kind header, such as Bearer and a token. Sealed at rest and never shown again.'),
      client_id: z
        .string()
        .optional()
        .describe(
          'For the kinds client_credentials and oauth_user: what the gateway is at the issuer of the tokens. oauth_user works without it at issuers that take client-id metadata documents.',
        ),
      client_secret: z.string().optional().describe('For these kinds. Sealed at rest and never shown again. oauth_user works without one.'),
      scopes: z.string().optional().describe('For these kinds, with spaces between them. Default: those that the server names.'),
      issuer: z.string().optional().describe('For these kinds: the only issuer that gets the secret. Default: the first one that the server names.'),
    })
    .optional()
    .describe(
      'What the server requires. client_credentials: the gateway gets tokens of the organisation. oauth_user: each person connects, and agents act with the connection of the person behind them. Default: none.',
    ),
  residency: residency.optional().describe('Where the server keeps and processes data, as you state it. Default: global.'),
  price_inr_per_call: z
    .number()
    .min(0)
    .max(1000)
    .optional()
    .describe('What budgets are charged for a call of one of its tools, in rupees, 0 to 1000. Default: 0.'),
  timeout_ms: z
    .int()
    .min(1)
    .max(300_000)
    .nullable()
    .optional()
    .describe('How long a call may take, at most 300000. Default: TOOL_TIMEOUT_MS of the installation.'),
})
export const serverChange = serverBody.omit({ slug: true }).partial()

const count = z.int()
export const serverView = z.object({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  url: z.string(),
  auth: z.object({
    kind: authKind,
    header_name: z.string().nullable(),
    header_mask: z.string().nullable().describe('Start and end of the value.'),
    client_id: z.string().optional().describe('For the kinds client_credentials and oauth_user, like the fields below.'),
    client_secret_mask: z.string().nullable().optional().describe('Start and end of the secret; null: none.'),
    scopes: z.string().optional(),
    issuer: z.string().optional().describe('The only issuer that gets the secret.'),
  }),
  residency,
  state: z.enum(['on', 'off']),
  price_inr_per_call: z.number(),
  timeout_ms: z.int().nullable(),
  era: z.enum(['modern', 'legacy']).nullable().describe('The protocol that it spoke last: modern is 2026-07-28 and later.'),
  last_sync_at: z.string().nullable().describe('ISO 8601, UTC: when its tools were last read.'),
  last_error: z.enum(lookErrors).nullable().describe('Why the last sync failed; null if it succeeded.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

/** The number of tools of a server in each state. */
export const toolCounts = z.object({ pending: count, approved: count, changed: count, blocked: count, gone: count })

/** A list of tools that were left out, with the reason of each. */
const leftOutView = z
  .array(z.object({ position: z.int().describe('In the list of the server, from 0.'), reason: z.string() }))
  .describe('Tools of the server that Brigade does not keep, the first 20.')

/** What a read of the tools of a server changed. */
export const syncView = z.object({
  new: count,
  changed: count,
  gone: count,
  returned: count,
  left_out: leftOutView,
  error: z.enum(lookErrors).nullable().describe('Why the server could not be read; null if it could.'),
  detail: z.string().nullable(),
})

/** A tool that a test found. */
export const testedTool = z.object({
  name: z.string().describe('The name that the server knows.'),
  findings: z.int().describe('Number of findings in its definition.'),
  approvable: z.boolean().describe('False: the definition has characters that a person cannot see.'),
})

const leftOutMax = 20

export function serverViewOf(server: ToolServerRow): z.output<typeof serverView> {
  return {
    id: server.id,
    slug: server.slug,
    name: server.name,
    url: server.url,
    auth: authViewOf(server),
    residency: server.residency,
    state: server.state,
    price_inr_per_call: inrFromUinr(server.priceUinr),
    timeout_ms: server.timeoutMs,
    era: server.era,
    last_sync_at: server.lastSyncAt?.toISOString() ?? null,
    last_error: lookErrors.find(error => error === server.lastError) ?? null,
    created_at: server.createdAt.toISOString(),
  }
}

function authViewOf({ authKind: kind, headerName, headerMask, ...client }: ToolServerRow): z.output<typeof serverView>['auth'] {
  const header = { kind, header_name: headerName, header_mask: headerMask }
  if (client.clientId === null || client.issuer === null) return header
  return { ...header, client_id: client.clientId, client_secret_mask: client.clientSecretMask, scopes: client.clientScopes ?? '', issuer: client.issuer }
}

export function countsView(counts: Readonly<Partial<Record<PinState, number>>> | undefined): z.output<typeof toolCounts> {
  const [pending = 0, approved = 0, changed = 0, blocked = 0, gone = 0] = pinStates.map(state => counts?.[state])
  return { pending, approved, changed, blocked, gone }
}

export function syncViewOf(result: SyncResult | null): z.output<typeof syncView> {
  if (result !== null && !result.ok) return { new: 0, changed: 0, gone: 0, returned: 0, left_out: [], error: result.error, detail: result.message }
  const number = (change: string): number => result?.changes.filter(each => each.change === change).length ?? 0
  return {
    new: number('new'),
    changed: number('changed'),
    gone: number('gone'),
    returned: number('returned'),
    left_out: result?.leftOut.slice(0, leftOutMax) ?? [],
    error: null,
    detail: null,
  }
}

export const testedToolOf = ({ upstreamName, findings }: ReceivedTool): z.output<typeof testedTool> => ({
  name: upstreamName,
  findings: findings.length,
  approvable: !findings.some(({ blocks }) => blocks),
})

/** Returns the parameters of a registration. Removes the spaces that people paste around URLs and headers. */
export function paramsOf(body: z.output<typeof serverBody>): ServerParams {
  return { name: '', url: '', header: null, client: null, residency: 'global', priceUinr: 0n, timeoutMs: null, ...changeOf(body) }
}

/** Returns the changed fields. Omitted fields stay omitted. Throws `bad_request` for an incomplete credential. */
export function changeOf({ name, url, auth, residency: place, price_inr_per_call: price, timeout_ms: timeoutMs }: z.output<typeof serverChange>): ServerChange {
  return {
    ...(name === undefined ? {} : { name: name.trim() }),
    ...(url === undefined ? {} : { url: url.trim() }),
    ...(auth === undefined ? {} : authOf(auth)),
    ...(place === undefined ? {} : { residency: place }),
    ...(price === undefined ? {} : { priceUinr: uinrFromInr(price) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }
}

/** Returns the header or the client. A change of `auth` replaces both. */
function authOf({ kind, ...given }: NonNullable<z.output<typeof serverChange>['auth']>): Pick<ServerParams, 'header' | 'client'> {
  const { header_name: name, header_value: value, client_id: id, client_secret: secret, scopes, issuer } = given
  const hasHeader = name !== undefined || value !== undefined
  const hasClient = id !== undefined || secret !== undefined || scopes !== undefined || issuer !== undefined
  if (kind === 'none' && !hasHeader && !hasClient) return { header: null, client: null }
  if (kind === 'header' && name !== undefined && value !== undefined && !hasClient) return { header: { name: name.trim(), value: value.trim() }, client: null }
  const isWhole = kind === 'client_credentials' ? id !== undefined && secret !== undefined : id !== undefined || secret === undefined
  if (kind === 'none' || kind === 'header' || hasHeader || !isWhole) throw incompleteAuth()
  const client = { kind, clientId: id?.trim() ?? null, clientSecret: secret?.trim() ?? null, scopes: scopes?.trim() ?? '', issuer: issuer?.trim() ?? null }
  return { header: null, client }
}

const incompleteAuth = () =>
  fail('bad_request', {
    message:
      '"auth" must be {"kind":"none"}, or {"kind":"header"} with header_name and header_value, or {"kind":"client_credentials"} with client_id and client_secret, or {"kind":"oauth_user"}, with client_id unless the issuer takes client-id metadata documents.',
  })

const idShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The path of a row of one server. */
export const serverPath = z.object({ id: z.string().describe('Id of the MCP server.') })

/** Returns the id in the path. A text that does not have the form of an id becomes an id that no server has. */
export const serverIdOf = ({ id }: { readonly id: string }): string => (idShape.test(id) ? id : '00000000-0000-0000-0000-000000000000')
