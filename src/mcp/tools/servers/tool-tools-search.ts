import { z } from 'zod'
import type { McpRows } from '../../mcp-rows.ts'
import { fenced, oneLine, untrustedNotice } from '../memory/text/tool-memory-marking.ts'
import { counted } from '../toolbox/text-lines.ts'
import { customTool, jsonOf, plainJson, searchToolset, type Tool } from '../toolbox/tool.ts'

const found = z.object({
  name: z.string(),
  description: z.string(),
  arguments: z.array(z.string()),
  required: z.array(z.string()),
  price_inr: z.number(),
})

const rowShape = z.object({ tools: z.array(found.extend({ server: z.string(), title: z.string().nullable() })) })

const lineMaxChars = 400
/** Tools that one answer has at most. Their descriptions are in the context of a model. */
const foundMax = 20

/** The tool tools_search finds tools of MCP servers by words. */
export function toolsSearchTool(row: McpRows['searchTools']): Tool {
  return customTool({
    name: 'tools_search',
    toolset: searchToolset,
    title: 'Find a tool',
    description:
      'Find tools of connected systems by what they do, such as "create an issue in the tracker". Returns names, descriptions and arguments. Then tools_describe has the schema, and tools_call calls.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema: z.object({
      query: z.string().min(1).max(500).describe('Action, thing and system in words.'),
      limit: z.number().int().min(1).max(foundMax).default(5),
    }),
    outputSchema: z.object({ notice: z.string(), untrusted: z.literal(true), tools: z.array(found) }),
    async run({ query, limit }, { call, invoker }) {
      const value = await invoker.call(row, { query: { q: query, limit: String(limit) } }, call)
      const tools = rowShape.parse(plainJson(jsonOf(value))).tools.map(({ server: _server, title: _title, ...shown }) => shown)
      const lines = tools.map(({ name, description, arguments: all, required, price_inr: price }) => {
        const args = all.map(argument => (required.includes(argument) ? `${argument}*` : argument)).join(', ')
        return oneLine(`${name}(${args})${price > 0 ? ` ₹${price}` : ''}: ${description}`, lineMaxChars)
      })
      return {
        text:
          tools.length === 0
            ? 'No tool that you may call fits these words. Try other words, or tell the user.'
            : `${counted(tools.length, 'tool')}, best first; * is required. ${untrustedNotice}\n${fenced(call.requestId, lines.join('\n'))}`,
        structured: { notice: untrustedNotice, untrusted: true, tools },
      }
    },
  })
}
