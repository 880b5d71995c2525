import { z } from 'zod'
import type { McpRows } from '../../mcp-rows.ts'
import { fenced, untrustedNotice } from '../memory/text/tool-memory-marking.ts'
import { customTool, jsonOf, plainJson, searchToolset, type Tool } from '../toolbox/tool.ts'

const rowShape = z.object({ name: z.string(), price_inr: z.number(), definition: z.looseObject({}) })

/** The tool tools_describe shows the approved definition of a tool, with the schema of its arguments. */
export function toolsDescribeTool(row: McpRows['readTool']): Tool {
  return customTool({
    name: 'tools_describe',
    toolset: searchToolset,
    title: 'Describe a tool',
    description: 'The whole definition of one tool that tools_search found: description and JSON schema of its arguments. Read it before tools_call.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema: z.object({ name: z.string().min(1).max(64).describe('As tools_search shows it.') }),
    outputSchema: z.object({
      notice: z.string(),
      untrusted: z.literal(true),
      name: z.string(),
      price_inr: z.number(),
      definition: z.record(z.string(), z.unknown()),
    }),
    async run({ name: named }, { call, invoker }) {
      const value = await invoker.call(row, { path: { name: named } }, call)
      const { name, price_inr, definition } = rowShape.parse(plainJson(jsonOf(value)))
      const cost = price_inr > 0 ? ` A call costs ₹${price_inr}.` : ''
      return {
        text: `The definition of ${name}.${cost} ${untrustedNotice}\n${fenced(call.requestId, JSON.stringify(definition))}`,
        structured: { notice: untrustedNotice, untrusted: true, name, price_inr, definition },
      }
    },
  })
}
