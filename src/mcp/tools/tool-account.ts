/** Tools that report the caller's identity and budgets. */
import { z } from 'zod'
import type { McpRows } from '../mcp-rows.ts'
import { quoted } from './memory/text/tool-memory-marking.ts'
import { counted, line, rupees } from './toolbox/text-lines.ts'
import { jsonOf, plainJson, rowTool, type Tool, type ToolAnnotations } from './toolbox/tool.ts'

const readsOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

const budget = z.looseObject({
  scope: z.string(),
  id: z.string(),
  period: z.string().optional(),
  cap_inr: z.number(),
  spent_inr: z.number(),
  held_inr: z.number().optional(),
  in_doubt_inr: z.number().optional(),
  remaining_inr: z.number(),
  increase_inr: z.number().optional(),
  increase_until: z.string().optional(),
  state: z.string(),
  resets_at: z.string().nullable(),
})
type Budget = z.output<typeof budget>

const who = z.looseObject({
  principal: z.looseObject({ kind: z.string(), id: z.number().int(), name: z.string() }),
  org: z.looseObject({ id: z.number().int(), name: z.string() }),
  user: z.looseObject({ id: z.number().int() }).nullable(),
  workspace_id: z.number().int().nullable(),
  key: z.looseObject({ id: z.number().int(), name: z.string() }),
  role: z.string().nullable(),
  scope: z.string(),
  token_expires_at: z.string().nullable(),
  limits: z.looseObject({ rpm_limit: z.number().nullable(), daily_limit: z.number().nullable() }),
  budget: budget.nullable().describe('Of the budgets that bind this credential the one with the least left.'),
  credit: z
    .looseObject({ balance_inr: z.number(), trial: z.boolean() })
    .nullable()
    .describe('Prepaid credit of the organisation; null where nothing is prepaid.'),
  memory: z.looseObject({ configured: z.boolean() }),
  version: z.string(),
})
type Who = z.output<typeof who>

/** The tool whoami shows the caller as the gateway sees it. */
export function whoamiTool(row: McpRows['whoami']): Tool {
  return rowTool({
    name: 'whoami',
    toolset: 'core',
    title: 'Who am I',
    description:
      'Who this credential is: key or agent, organisation, workspace, scopes, role, limits, tightest budget, prepaid credit, when the token ends, and whether shared memory is configured.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({}),
    outputSchema: who.extend({ scopes: z.array(z.string()).describe('What this credential is good for.') }),
    toInput: () => ({}),
    toResult: value => {
      const me = who.parse(plainJson(jsonOf(value)))
      return { text: whoText(me), structured: { ...me, scopes: me.scope.split(' ').filter(word => word !== '') } }
    },
  })
}

function whoText(me: Who): string {
  const { principal, org, user, workspace_id: workspace, key, role, scope, token_expires_at: expires, limits, memory, version } = me
  return [
    `${principal.kind} ${quoted(principal.name)} (id ${principal.id})${principal.kind === 'agent' ? `, minted with the key ${quoted(key.name)} (id ${key.id})` : ''}`,
    line(
      `organisation ${quoted(org.name)} (id ${org.id})`,
      workspace !== null && `workspace ${workspace}`,
      user === null ? 'no user' : `user ${user.id}${role === null ? '' : `, ${role}`}`,
    ),
    line(`scope ${scope === '' ? 'none' : scope}`, expires !== null && `token ends ${expires}`),
    line(
      limits.rpm_limit === null ? null : `at most ${counted(limits.rpm_limit, 'request')} a minute`,
      limits.daily_limit === null ? null : `at most ${counted(limits.daily_limit, 'request')} a day`,
      me.budget === null ? 'no budget binds this credential' : `tightest budget: ${budgetLine(me.budget)}`,
    ),
    ...(me.credit === null ? [] : [creditLine(me.credit)]),
    `shared memory is ${memory.configured ? 'configured; memory_paths lists what you may read and write' : 'not configured'}`,
    `gateway version ${version}`,
  ].join('\n')
}

function creditLine({ balance_inr: balance, trial }: NonNullable<Who['credit']>): string {
  if (trial) return "the key is on trial: models that the platform runs in India are free, others need the organisation's own provider key or a top-up"
  return balance > 0
    ? `prepaid credit of the organisation: ₹${balance}`
    : `the prepaid credit of the organisation is used up (₹${balance}): models on the platform's account are refused until an owner tops up`
}

const scopeNames = ['agent', 'key', 'workspace', 'member', 'team', 'org'] as const

/** The tool budget_get shows the budgets that bind the caller. */
export function budgetTool(row: McpRows['budgets']): Tool {
  const outputSchema = z.looseObject({ budgets: z.array(budget) })
  return rowTool({
    name: 'budget_get',
    toolset: 'usage',
    title: 'Budgets',
    description:
      'The budgets that apply to this credential: cap, spent, held by running calls and what remains of each scope, and when it starts again. Look here before much work.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({ scope: z.enum(scopeNames).optional().describe('Only budgets of this scope.') }),
    outputSchema,
    toInput: () => ({}),
    toResult: (value, { scope }) => {
      const all = outputSchema.parse(plainJson(jsonOf(value))).budgets
      const budgets = scope === undefined ? all : all.filter(one => one.scope === scope)
      const none = scope === undefined ? 'No budget binds this credential.' : `No budget of the scope ${scope} binds this credential.`
      return { text: budgets.length === 0 ? none : budgets.map(budgetLine).join('\n'), structured: { budgets } }
    },
  })
}

function budgetLine({
  scope,
  id,
  period = 'month',
  cap_inr,
  spent_inr,
  held_inr = 0,
  in_doubt_inr = 0,
  remaining_inr,
  state,
  resets_at,
  ...more
}: Budget): string {
  const parts = [
    `${rupees(spent_inr)} spent`,
    ...(more.increase_inr === undefined ? [] : [`${rupees(more.increase_inr)} granted beside it until ${more.increase_until}`]),
    ...(held_inr > 0 ? [`${rupees(held_inr)} held by running calls`] : []),
    ...(in_doubt_inr > 0 ? [`${rupees(in_doubt_inr)} in doubt`] : []),
  ]
  const warning = state === 'blocked' ? ', BLOCKED' : state === 'warned' ? ', nearly spent' : ''
  const end = resets_at === null ? 'never starts again' : `starts again ${resets_at}`
  const name = `${scope} ${id}${period === 'month' ? '' : ` (${period})`}`
  return `${name}: ${rupees(remaining_inr)} of ${rupees(cap_inr)} left (${parts.join(', ')})${warning}; ${end}`
}
