/** The tool with which an agent asks a person for more budget. */
import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import type { McpRows } from '../mcp-rows.ts'
import { counted, line, rupees } from './toolbox/text-lines.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './toolbox/tool.ts'

const request = z.looseObject({
  id: z.number().int(),
  scope: z.string(),
  target_id: z.string(),
  period: z.string().nullable(),
  run_id: z.string().nullable(),
  amount_inr: z.number().nullable(),
  calls: z.number().nullable(),
  state: z.string(),
  expires_at: z.string(),
})
const outputSchema = z.looseObject({ request })

const inputSchema = z.object({
  scope: z.enum(['run', 'agent', 'key', 'workspace', 'member', 'org']).describe('run, or the scope of the budget that is spent, as the refusal says it.'),
  amount_inr: z.number().positive().optional().describe('Rupees more. Send either this or calls.'),
  calls: z.number().int().min(1).optional().describe('Calls more, for a run with a cap on calls.'),
  reason: z.string().min(1).max(500).describe('Why you need it, for the person who decides: one line.'),
  run_id: z.string().max(256).optional().describe('The run, as run_id of the refusal.'),
  period: z.enum(['ever', 'month', 'week', 'day']).optional().describe('Of the budget. Default: the period that is spent.'),
})

/** The tool budget_request asks for more of a budget or run. A person decides, so the answer of the tool is an open request. */
export function budgetRequestTool(row: McpRows['askForBudget']): Tool {
  return rowTool({
    name: 'budget_request',
    toolset: 'usage',
    title: 'Ask for more budget',
    description:
      'Asks a person for more budget, or for a higher cap of a run, after a call was refused. A person decides later: tell the user, and do not repeat the request.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    row,
    inputSchema,
    outputSchema,
    toInput: args => {
      if ((args.amount_inr === undefined) === (args.calls === undefined)) throw fail('bad_request', { message: 'Send amount_inr or calls.' })
      return { body: args }
    },
    toResult: value => {
      const reply = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: requestText(reply.request), structured: reply }
    },
  })
}

function requestText({ id, scope, target_id, period, run_id, amount_inr, calls, expires_at }: z.output<typeof request>): string {
  const what = run_id === null ? `${period === null ? '' : `${period} `}budget of ${scope} ${target_id}` : `run ${run_id}`
  return line(
    `request ${id}: ${amount_inr === null ? counted(calls ?? 0, 'call') : rupees(amount_inr)} more for the ${what}`,
    `open until ${expires_at}`,
    'a person decides',
  )
}
