import { z } from 'zod'
import { cursorCharsMax } from '../../../platform/db/list-cursor.ts'
import { endpointOf, reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { toolPatternMaxChars } from '../../../platform/security/tool-patterns.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { CallableTool } from '../registry/callable-tool.ts'
import type { ToolCalls } from './tool-calls.ts'

const row = endpointOf<{ toolCalls: ToolCalls }>()

const requires = ({ toolCalls }: { toolCalls: ToolCalls }): void => toolCalls.requireOn()
const tag = 'tools'
/** A result belongs to its call. No cache keeps it. */
const notCached = { 'cache-control': 'no-store' }
/** Tools of one page. */
const pageMax = 200

const tool = z.object({
  name: z.string().describe('The public name: <slug>__<tool>.'),
  server: z.string().describe('The slug of its server.'),
  own_name: z.string().describe('The name that its server knows.'),
  price_inr: z.number().describe('What a call costs, in rupees.'),
  residency: z.enum(['india', 'global']).describe('Where its server is, as the organisation states it.'),
  hash: z.string().describe('SHA-256 of the approved definition.'),
  definition: z
    .looseObject({ name: z.string() })
    .describe('The approved definition as its server sent it, with the public name. Its texts are those of the server.'),
})
const namePath = z.object({ name: z.string().max(toolPatternMaxChars).describe('The public name of a tool.') })

const content = z.looseObject({ type: z.string() })

export const toolEndpoints = {
  listTools: row({
    at: 'GET /v1/tools',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'The tools of MCP servers that this credential may call now, by name. No server is asked.',
    input: {
      query: z.object({
        server: z
          .string()
          .max(200)
          .regex(/^[a-z][a-z0-9-]{0,15}(?:,[a-z][a-z0-9-]{0,15})*$/, 'one or more slugs, with commas between them')
          .optional()
          .describe('Slugs of servers, with commas between them: only their tools.'),
        limit: z.coerce.number().int().min(1).max(pageMax).default(pageMax).describe(`Tools of a page, at most ${pageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ tools: z.array(tool), next_cursor: z.string().nullable().describe('Null behind the last page.') }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'database_unavailable'],
    requires,
    async handle({ toolCalls }, { query: { server, limit, cursor } }, call) {
      const page = await toolCalls.page(call, {
        slugs: server === undefined ? null : new Set(server.split(',')),
        after: cursor === undefined ? null : nameOf(cursor),
        limit,
      })
      return { tools: page.tools.map(viewOf), next_cursor: page.next === null ? null : cursorOf(page.next) }
    },
  }),

  readTool: row({
    at: 'GET /v1/tools/{name}',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'One tool that this credential may call now.',
    input: { path: namePath },
    output: tool,
    errors: ['forbidden', 'unavailable', 'tool_not_found', 'database_unavailable'],
    requires,
    handle: async ({ toolCalls }, { path }, call) => viewOf(await toolCalls.find(call, path.name)),
  }),

  callTool: row({
    at: 'POST /v1/tools/{name}/call',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'Calls a tool of an MCP server. The price is held in the budgets of the caller before, and counts when the call was sent.',
    input: {
      path: namePath,
      body: z.strictObject({ arguments: z.record(z.string(), z.unknown()).optional().describe('As the schema of the approved definition says.') }),
    },
    output: z.object({
      content: z.array(content).describe('Text, images, audio, resources and links, as the server sent them.'),
      structuredContent: z.unknown().optional(),
      isError: z.boolean().optional().describe('True when the tool itself reports a failure.'),
      _meta: z
        .record(z.string(), z.unknown())
        .describe('`dev.brigade/origin` names the server, the tool and the approved hash. What the result says is untrusted.'),
    }),
    errors: [
      'forbidden',
      'unavailable',
      'bad_request',
      'tool_not_found',
      'call_cap_exceeded',
      'run_ended',
      'run_required',
      'run_budget_exceeded',
      'run_calls_exceeded',
      'run_time_exceeded',
      'run_subagents_exceeded',
      'agent_revoked_label',
      'concurrency_limit_reached',
      'rate_limit_exceeded',
      'daily_limit_reached',
      'budget_exceeded',
      'agent_budget_exceeded',
      'budget_held',
      'agent_budget_held',
      'tool_connection_required',
      'tool_server_failed',
      'tool_result_too_large',
      'tool_server_unavailable',
      'tool_timeout',
      'database_unavailable',
      'journal_full',
    ],
    audit: false,
    inRun: true,
    requires,
    handle: async ({ toolCalls }, { path, body }, call) => {
      const { answer, headers } = await toolCalls.call(call, path.name, body.arguments ?? {})
      return reply.json(answer, 200, { ...notCached, ...headers })
    },
  }),
}

/** A tool in memory does not change, so its view is made once. Lists of thousands of tools are asked for often. */
const views = new WeakMap<CallableTool, z.output<typeof tool>>()

/** Returns a tool as callers see it. */
export function viewOf(of: CallableTool): z.output<typeof tool> {
  const known = views.get(of)
  if (known !== undefined) return known
  const view = {
    name: of.publicName,
    server: of.slug,
    own_name: of.upstreamName,
    price_inr: inrFromUinr(of.priceUinr),
    residency: of.residency,
    hash: of.hash,
    definition: { ...of.definition, name: of.publicName },
  }
  views.set(of, view)
  return view
}

/** The cursor is the last name of the page before. */
const cursorOf = (name: string): string => Buffer.from(name).toString('base64url')

function nameOf(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw fail('bad_request', { message: 'cursor: not a cursor of this list.' })
  return name
}
