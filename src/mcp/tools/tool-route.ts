import { z } from 'zod'
import type { McpRows } from '../mcp-rows.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './toolbox/tool.ts'

const candidate = z.looseObject({ model: z.string(), provider: z.string().nullable(), eligible: z.boolean(), why: z.string() })

/** Maximum number of routes in the text, and maximum number of routes listed for one reason. The structured content lists all routes. */
const linesMax = 30
const sameReasonMax = 8

/** Returns the prompt as the field of a request body. The row tells the kinds of calls apart by this field. */
function promptOf(kind: 'chat' | 'embedding' | 'image', prompt: string): object {
  if (kind === 'chat') return { messages: [{ role: 'user', content: prompt }] }
  return kind === 'image' ? { prompt } : { input: prompt }
}

/** The tool route_preview shows where a call would go, and why. Nothing is dialed or charged. */
export function routeTool(row: McpRows['previewRoute']): Tool {
  const outputSchema = z.looseObject({
    model: z.string().describe('The model that would be asked first.'),
    provider: z.string(),
    preset: z.string().optional(),
    capability: z.string().optional().describe('What the prompt was taken for.'),
    reason: z.string(),
    candidates: z.array(candidate).describe('Routes that would be dialed, in this order.'),
    excluded: z.array(candidate).describe('Routes that would not, and why.'),
  })
  return rowTool({
    name: 'route_preview',
    toolset: 'core',
    title: 'Where would a call go',
    description:
      'Which model and provider a chat, embedding or image call would go to, in which order on failure, and why others would not be asked. Free: nothing is sent to a provider. Budgets are not asked.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema: z.object({
      model: z.string().min(1).max(256).default('auto').describe('Model id from models_list, or an auto:* preset.'),
      prompt: z.string().min(1).optional().describe('What the call would ask: auto presets and long prompts go by it.'),
      kind: z.enum(['chat', 'embedding', 'image']).default('chat').describe('Which call the prompt is of.'),
      max_tokens: z.number().int().min(1).optional(),
      tools: z.boolean().default(false).describe('true: the call would bring functions.'),
      optimize: z.enum(['price', 'latency', 'uptime', 'throughput', 'quality', 'auto']).optional(),
      provider: z.string().min(1).optional().describe('Pin one provider id.'),
      data_policy: z.enum(['india_only']).optional(),
      exclude: z.array(z.string().min(1)).max(50).optional(),
      fallbacks: z.array(z.string().min(1)).min(1).max(10).optional(),
    }),
    outputSchema,
    toInput: ({ prompt, kind, tools, ...fields }) => ({
      body: {
        ...fields,
        ...(prompt === undefined ? {} : promptOf(kind, prompt)),
        ...(tools ? { tools: [{ type: 'function', function: { name: 'any', parameters: { type: 'object', properties: {} } } }] } : {}),
      },
    }),
    toResult: value => {
      const preview = z
        .looseObject({ model: z.string(), provider: z.string(), reason: z.string(), candidates: z.array(candidate) })
        .parse(plainJson(jsonOf(value)))
      const candidates = preview.candidates.filter(({ eligible }) => eligible)
      const excluded = preview.candidates.filter(({ eligible }) => !eligible)
      return {
        text: [
          `${preview.model} at ${preview.provider} (${preview.reason})`,
          ...candidates.slice(0, linesMax).map(({ model, provider, why }, index) => `${index + 1}. ${model} at ${provider}: ${why}`),
          ...(excluded.length === 0 ? [] : ['Not asked:']),
          ...byReason(excluded).slice(0, linesMax),
        ].join('\n'),
        structured: { ...preview, candidates, excluded },
      }
    },
  })
}

/** Returns one line for each reason. Many routes of a catalog are skipped for the same reason. */
function byReason(excluded: readonly z.output<typeof candidate>[]): string[] {
  const groups = new Map<string, z.output<typeof candidate>[]>()
  for (const route of excluded) groups.set(route.why, [...(groups.get(route.why) ?? []), route])
  return [...groups].map(([why, routes]) => {
    const names = routes.slice(0, sameReasonMax).map(({ model, provider }) => (provider === null ? model : `${model} at ${provider}`))
    return `- ${why}: ${names.join(', ')}${routes.length > sameReasonMax ? ` and ${routes.length - sameReasonMax} more` : ''}`
  })
}
