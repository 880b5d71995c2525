import { z } from 'zod'
import { agentPath, idOf } from '../../../agents/agent-shapes.ts'
import { endpointOf } from '../../../platform/endpoint.ts'
import { toolPattern, toolPatternMaxChars } from '../../../platform/security/tool-patterns.ts'
import { searchText, textOf } from '../../../platform/values/list-params.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { ToolServers } from '../registry/servers/tool-servers.ts'
import type { AgentTools, JudgedTool } from './agent-tools.ts'

const row = endpointOf<{ toolServers: ToolServers; agentTools: AgentTools }>()

const pageMax = 200
/** The maximum of `allowed_tools` of an agent. */
const patternsMax = 100
const pattern = z.string().max(toolPatternMaxChars).regex(toolPattern, 'must be the public name of a tool, or slug__* for all tools of a server')

const judged = z.object({
  name: z.string().describe('The public name: <slug>__<tool>.'),
  server: z.string().describe('The slug of its server.'),
  title: z.string().nullable().describe('It is text of the server.'),
  price_inr: z.number().describe('What a call costs, in rupees.'),
  pattern: z.string().nullable().describe('The pattern that matches it. Null: none does.'),
  stopped_by: z
    .object({ id: z.int(), name: z.string() })
    .nullable()
    .describe('The nearest agent above whose rule does not allow it. The agent may call the tool when this is null and pattern is not.'),
})
const titleMaxChars = 200

export const agentToolEndpoints = {
  previewAgentTools: row({
    at: 'POST /me/agents/{id}/tools',
    auth: 'session',
    access: {},
    tag: 'tools',
    summary:
      'The approved tools of MCP servers as one agent sees them: which pattern of allowed_tools matches each, and which agent above stops it. With a rule in the body, it says what that rule would do. Nothing changes.',
    input: {
      path: agentPath,
      body: z.strictObject({
        allowed_tools: z.array(pattern).max(patternsMax).optional().describe('The rule to judge by. Default: the rule of the agent.'),
        q: searchText('A part of the name of a tool, in upper or lower case.'),
        show: z.enum(['matched', 'all']).default('matched').describe('all: also the tools that no pattern matches.'),
        limit: z.int().min(1).max(pageMax).default(pageMax).describe(`Tools of a page, at most ${pageMax}.`),
        cursor: z.string().max(toolPatternMaxChars).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({
      tools: z.array(judged),
      next_cursor: z.string().nullable().describe('Null after the last page.'),
      allowed: z.int().describe('Number of tools that the agent may call.'),
      total: z.int().describe('Number of approved tools of the organisation.'),
      patterns: z
        .array(z.object({ pattern: z.string(), tools: z.int() }))
        .describe('Each pattern of the rule, with the number of approved tools that it matches.'),
    }),
    errors: ['unavailable', 'bad_request', 'not_found', 'database_unavailable'],
    audit: false,
    requires: ({ toolServers }) => toolServers.requireEnabled(),
    async handle({ agentTools }, { path, body }, call) {
      const { allowed_tools: patterns, q, show, limit, cursor } = body
      const shown = { patterns, text: textOf(q)?.toLowerCase(), isAll: show === 'all', after: cursor ?? null, limit }
      const { tools, next, allowed, total, matches } = await agentTools.judge(call.principal.orgId, idOf(path), shown)
      return {
        tools: tools.map(viewOf),
        next_cursor: next,
        allowed,
        total,
        patterns: [...matches].map(([each, count]) => ({ pattern: each, tools: count })),
      }
    },
  }),
}

function viewOf({ tool: { publicName, slug, definition, priceUinr }, pattern: matched, stoppedBy }: JudgedTool): z.output<typeof judged> {
  const title = definition['title']
  return {
    name: publicName,
    server: slug,
    title: typeof title === 'string' ? title.slice(0, titleMaxChars).toWellFormed() : null,
    price_inr: inrFromUinr(priceUinr),
    pattern: matched,
    stopped_by: stoppedBy === null ? null : { id: stoppedBy.agentId, name: stoppedBy.name },
  }
}
