import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import type { McpRows } from '../mcp-rows.ts'
import { quoted } from './memory/text/tool-memory-marking.ts'
import { counted, line, rupees } from './toolbox/text-lines.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './toolbox/tool.ts'

/** Maximum number of lines of one list in the text. The structured content has all of them. */
const linesMax = 20

const sums = z.looseObject({
  requests: z.number(),
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
  cost_inr: z.number(),
  value_inr: z.number(),
})
type Sums = z.output<typeof sums>

const byModel = sums.extend({ model: z.string() })
const byAgent = sums.extend({ id: z.number().nullable(), name: z.string().nullable(), label: z.string().nullable() })
const byDay = sums.extend({ day: z.string() })
type AgentRow = z.output<typeof byAgent>

const report = z.looseObject({
  from: z.string(),
  to: z.string(),
  totals: sums,
  by_model: z.array(byModel),
  by_agent: z.array(byAgent),
  by_day: z.array(byDay).optional(),
})
type Report = z.output<typeof report>

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be YYYY-MM-DD')
const inputSchema = z.object({
  from: day.optional().describe('First IST day, YYYY-MM-DD. Default: the first of the month.'),
  to: day.optional().describe('Last IST day, YYYY-MM-DD. Default: today.'),
  group_by: z.enum(['model', 'agent', 'day']).optional().describe('rows by one of these. Default: by_model and by_agent.'),
  agent: z
    .union([z.string().min(1), z.number().int()])
    .optional()
    .describe('Only this agent: its id, name or label. Goes with group_by agent or none.'),
})
type Wanted = z.output<typeof inputSchema>

/** The sums that every list shows. The other sums are only in totals. */
const listed = { requests: z.number(), total_tokens: z.number(), cost_inr: z.number() }

const outputSchema = z.looseObject({
  from: z.string(),
  to: z.string(),
  totals: sums,
  by_model: z.array(z.looseObject({ model: z.string(), ...listed })).optional(),
  by_agent: z.array(z.looseObject({ id: z.number().nullable(), name: z.string().nullable(), label: z.string().nullable(), ...listed })).optional(),
  group_by: z.enum(['model', 'agent', 'day']).optional(),
  rows: z.array(z.looseObject(listed)).optional().describe('With group_by or agent: one for each model, agent or day.'),
})

/** The tool usage_get shows the numbers of GET /v1/usage. Without arguments, its structured content is exactly the reply of that endpoint. */
export function usageTool(row: McpRows['usage']): Tool {
  return rowTool({
    name: 'usage_get',
    toolset: 'usage',
    title: 'Usage',
    description: 'Requests, tokens and rupees of the organisation in a period: in total, by model, by agent or by day.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema,
    outputSchema,
    toInput: args => {
      if (args.agent !== undefined && (args.group_by ?? 'agent') !== 'agent')
        throw fail('bad_request', { message: 'Models and days are counted for the organisation, not for one agent: leave agent out, or group_by agent.' })
      return {
        query: {
          ...(args.from === undefined ? {} : { from: args.from }),
          ...(args.to === undefined ? {} : { to: args.to }),
          ...(args.group_by === 'day' ? { group_by: 'day' } : {}),
        },
      }
    },
    toResult: (value, args) => {
      const usage = report.parse(plainJson(jsonOf(value)))
      const { from, to } = usage
      if (args.agent !== undefined) return ofAgent(usage, args.agent)
      if (args.group_by === undefined) return { text: reportText(usage), structured: usage }
      const rows = rowsOf(usage, args.group_by)
      return {
        text: [headOf(usage, usage.totals), ...linesOf(rows)].join('\n'),
        structured: { from, to, totals: usage.totals, group_by: args.group_by, rows: rows.map(([, row]) => row) },
      }
    },
  })
}

type Named<T> = readonly [name: string, row: T]

function rowsOf(usage: Report, by: NonNullable<Wanted['group_by']>): Named<Sums>[] {
  if (by === 'model') return usage.by_model.map(row => [row.model, row])
  if (by === 'agent') return usage.by_agent.map(row => [agentName(row), row])
  return (usage.by_day ?? []).map(row => [row.day, row])
}

function ofAgent(usage: Report, agent: string | number): { text: string; structured: Record<string, unknown> } {
  const { from, to } = usage
  const wanted = String(agent).toLowerCase()
  const rows = usage.by_agent.filter(({ id, name, label }) => [String(id ?? ''), name, label].some(word => word?.toLowerCase() === wanted))
  const totals = Object.fromEntries(Object.keys(usage.totals).map(field => [field, rows.reduce((sum, row) => sum + Number(row[field] ?? 0), 0)])) as Sums
  return {
    text: [
      headOf(usage, totals),
      ...(rows.length === 0 ? [`Nothing by the agent ${agent} in this time.`] : linesOf(rows.map(row => [agentName(row), row]))),
    ].join('\n'),
    structured: { from, to, totals, group_by: 'agent', rows },
  }
}

function agentName({ id, name, label }: AgentRow): string {
  if (id !== null) return `agent ${quoted(name ?? '')} (id ${id})`
  return label === null ? 'without an agent' : `label ${quoted(label)}`
}

function reportText(usage: Report): string {
  return [
    headOf(usage, usage.totals),
    ...(usage.by_model.length === 0 ? [] : ['By model:', ...linesOf(rowsOf(usage, 'model'))]),
    ...(usage.by_agent.length === 0 ? [] : ['By agent:', ...linesOf(rowsOf(usage, 'agent'))]),
  ].join('\n')
}

const headOf = ({ from, to }: Report, totals: Sums): string => `${from} to ${to}: ${sumText(totals)}`

function sumText({ requests, total_tokens: tokens, prompt_tokens: prompt, completion_tokens: completion, cost_inr: cost, value_inr: worth }: Sums): string {
  return line(
    counted(requests, 'request'),
    `${counted(tokens, 'token')} (${prompt} in, ${completion} out)`,
    `${rupees(cost)} charged`,
    worth !== cost && `worth ${rupees(worth)}`,
  )
}

function linesOf(rows: readonly Named<Sums>[]): string[] {
  const rest = rows.length - linesMax
  return [...rows.slice(0, linesMax).map(([name, row]) => `- ${name}: ${sumText(row)}`), ...(rest > 0 ? [`- and ${rest} more`] : [])]
}
