import { z } from 'zod'
import { type Call, endpointOf } from '../../../../platform/endpoint.ts'
import { fail } from '../../../../platform/errors.ts'
import type { Principal } from '../../../../platform/security/principal.ts'
import type { Finding } from '../definitions/findings.ts'
import { serverIdOf, serverPath } from '../servers/tool-server-views.ts'
import type { ToolServers } from '../servers/tool-servers.ts'
import type { Approver, PinDetail, ToolApprovals } from './approvals.ts'
import { type PinRow, pinStates } from './pin-queries.ts'

const row = endpointOf<{ toolServers: ToolServers; toolApprovals: ToolApprovals }>()

const requires = ({ toolServers }: { toolServers: ToolServers }): void => toolServers.requireEnabled()
const tag = 'tools'
const namesMax = 1_000
const publicName = z.string().max(64).describe('The name that callers use: `slug__tool`.')

const pin = z.object({
  name: publicName,
  upstream_name: z.string().describe('The name that the server knows.'),
  state: z.enum(pinStates).describe('Only an approved tool can be called. changed: the server shows another definition than the approved one.'),
  hash: z.string().describe('SHA-256 of the definition that the server shows, in hexadecimal.'),
  approved_hash: z.string().nullable(),
  approved_by: z.int().nullable().describe('User id.'),
  approved_at: z.string().nullable().describe('ISO 8601, UTC.'),
  blocked_at: z.string().nullable(),
  blocked_reason: z.string().nullable(),
  gone_at: z.string().nullable().describe('Since when the server does not list it.'),
  first_seen_at: z.string(),
  seen_at: z.string().describe('When the definition that the server shows was first seen.'),
  approvable: z.boolean().describe('False: a finding blocks the approval of this definition.'),
  findings: z.int().describe('Number of findings in the definition.'),
})
const finding = z.object({
  kind: z.enum(['zero_width', 'bidi', 'tag', 'variation', 'control', 'remote_ref']),
  at: z.string().describe('JSON pointer of the text.'),
  code_point: z.string().nullable().describe('The first such character, such as U+200B.'),
  blocks: z.boolean().describe('True: the definition cannot be approved. False: advice.'),
})
const detail = pin.extend({
  findings: z.array(finding),
  definition: z.unknown().describe('As the server shows it.'),
  approved_definition: z.unknown().describe('As it was approved; null if none was.'),
  diff: z
    .array(
      z.object({
        at: z.string().describe('JSON pointer.'),
        change: z.enum(['added', 'removed', 'changed']),
        approved: z.unknown().optional(),
        seen: z.unknown().optional(),
      }),
    )
    .describe('Where the shown definition differs from the approved one, at most 200 places.'),
})

export const toolPinEndpoints = {
  listServerTools: row({
    at: 'GET /me/tool-servers/{id}/tools',
    auth: 'session',
    access: {},
    tag,
    summary: 'The tools of an MCP server by name, each with its state.',
    input: {
      path: serverPath,
      query: z.object({
        state: z.enum(pinStates).optional().describe('Only tools in this state.'),
        limit: z.coerce.number().int().min(1).max(200).default(100),
        cursor: z.string().max(64).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ tools: z.array(pin), next_cursor: z.string().nullable().describe('Null after the last page.') }),
    errors: ['unavailable', 'bad_request', 'not_found'],
    requires,
    async handle({ toolApprovals }, { path, query }, call) {
      const { cursor = null, state = null, limit } = query
      const page = await toolApprovals.list(call.principal.orgId, serverIdOf(path), { cursor, state, limit })
      return { tools: page.pins.map(pinView), next_cursor: page.nextCursor }
    },
  }),

  getServerTool: row({
    at: 'GET /me/tool-servers/{id}/tools/{tool}',
    auth: 'session',
    access: {},
    tag,
    summary: 'A tool with the definition that its server shows, the approved one, where they differ, and what was found in it.',
    input: { path: serverPath.extend({ tool: z.string().describe('The name that callers use.') }) },
    output: z.object({ tool: detail }),
    errors: ['unavailable', 'not_found'],
    requires,
    async handle({ toolApprovals }, { path }, call) {
      return { tool: detailView(await toolApprovals.find(call.principal.orgId, serverIdOf(path), path.tool)) }
    },
  }),

  approveTools: row({
    at: 'POST /me/tool-servers/{id}/tools/approve',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Approves definitions by their hash, all or none. It fails when the server shows another definition by now. It ends the block of a blocked tool.',
    input: {
      path: serverPath,
      body: z.strictObject({
        tools: z
          .array(z.strictObject({ name: publicName, hash: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits') }))
          .min(1)
          .max(namesMax),
      }),
    },
    output: z.object({ ok: z.literal(true), approved: z.int() }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'not_found', 'tool_changed', 'tool_not_approvable', 'cap'],
    requires,
    async handle({ toolApprovals }, { path, body }, call) {
      await toolApprovals.approve(serverIdOf(path), body.tools, approverOf(call))
      return { ok: true, approved: body.tools.length }
    },
  }),

  blockTools: row({
    at: 'POST /me/tool-servers/{id}/tools/block',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Blocks tools until somebody approves them again. Running calls of them end.',
    input: {
      path: serverPath,
      body: z.strictObject({
        tools: z.array(publicName).min(1).max(namesMax),
        reason: z.string().optional().describe('For people: one line, at most 200 characters.'),
      }),
    },
    output: z.object({ ok: z.literal(true), blocked: z.int() }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'not_found'],
    requires,
    async handle({ toolApprovals }, { path, body }, call) {
      await toolApprovals.block(serverIdOf(path), body.tools, reasonOf(body.reason), approverOf(call))
      return { ok: true, blocked: new Set(body.tools).size }
    },
  }),
}

const approverOf = ({ principal, requestId, clientIp }: Call<Principal>): Approver => ({ principal, sourceIp: clientIp() || null, requestId })

function reasonOf(given: string | undefined): string | null {
  const reason = given?.trim() ?? ''
  if (!/^[^\p{Cc}\p{Cs}]{0,200}$/u.test(reason)) throw fail('bad_request', { message: '"reason" must be one line of at most 200 characters.' })
  return reason === '' ? null : reason
}

const barred = (findings: readonly Finding[]): boolean => findings.some(({ blocks }) => blocks)

function pinView(row: PinRow): z.output<typeof pin> {
  return {
    name: row.publicName,
    upstream_name: row.upstreamName,
    state: row.state,
    hash: row.seenHash,
    approved_hash: row.approvedHash,
    approved_by: row.approvedBy,
    approved_at: row.approvedAt?.toISOString() ?? null,
    blocked_at: row.blockedAt?.toISOString() ?? null,
    blocked_reason: row.blockedReason,
    gone_at: row.goneAt?.toISOString() ?? null,
    first_seen_at: row.firstSeenAt.toISOString(),
    seen_at: row.seenAt.toISOString(),
    approvable: !barred(row.findings) && row.goneAt === null,
    findings: row.findings.length,
  }
}

function detailView(row: PinDetail): z.output<typeof detail> {
  return {
    ...pinView(row),
    findings: [...row.findings],
    definition: row.seen,
    approved_definition: row.approved,
    diff: [...row.differences],
  }
}
