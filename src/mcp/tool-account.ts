/** Tools that say who calls, what there is to call, what was used and what is left. */
import { z } from 'zod'
import type { AnyRow } from '../platform/endpoint.ts'
import { jsonOf, plainJson, rowTool, type Tool, type ToolAnnotations } from './tool.ts'

const readsOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** Data as text: compact JSON, which models read as well as prose. */
const asText = (value: unknown): string => JSON.stringify(value)

const record = z.record(z.string(), z.unknown())

/** whoami: the caller as the gateway sees it. */
export function whoamiTool(row: AnyRow): Tool {
  const outputSchema = z.looseObject({
    principal: z.looseObject({ kind: z.string(), id: z.number().int(), name: z.string() }),
    org: z.looseObject({ id: z.number().int(), name: z.string() }),
    scope: z.string(),
    version: z.string(),
  })
  return rowTool({
    name: 'whoami',
    toolset: 'core',
    title: 'Who am I',
    description:
      'Who this credential is: key or agent, organisation, workspace, scope, role, limits, when the token ends, and whether shared memory is configured.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({}),
    outputSchema,
    toInput: () => ({}),
    toResult: value => {
      const who = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: asText(who), structured: who }
    },
  })
}

/** usage_get: the numbers of GET /v1/usage. */
export function usageTool(row: AnyRow): Tool {
  const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/)
  const outputSchema = z.looseObject({ from: z.string(), to: z.string(), totals: record, by_model: z.array(record), by_agent: z.array(record) })
  return rowTool({
    name: 'usage_get',
    toolset: 'usage',
    title: 'Usage',
    description: 'Requests, tokens and rupees in a period, in total, by model and by agent.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({ from: day.optional().describe('First IST day, YYYY-MM-DD.'), to: day.optional().describe('Last IST day, YYYY-MM-DD.') }),
    outputSchema,
    toInput: args => ({ query: { ...(args.from === undefined ? {} : { from: args.from }), ...(args.to === undefined ? {} : { to: args.to }) } }),
    toResult: value => {
      const usage = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: asText(usage), structured: usage }
    },
  })
}

/** budget_get: the budgets that bind the caller. */
export function budgetTool(row: AnyRow): Tool {
  const outputSchema = z.looseObject({ budgets: z.array(record) })
  return rowTool({
    name: 'budget_get',
    toolset: 'usage',
    title: 'Budgets',
    description:
      'The monthly budgets that bind this credential: cap, spent and held rupees of each scope, and when it starts anew. Look here before much work.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({}),
    outputSchema,
    toInput: () => ({}),
    toResult: value => {
      const budgets = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: budgets.budgets.length === 0 ? 'No budget binds this credential.' : asText(budgets), structured: budgets }
    },
  })
}
