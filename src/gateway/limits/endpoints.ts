import { z } from 'zod'
import { cursorCharsMax } from '../../platform/db/list-cursor.ts'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import { ownerOf, searchText, textOf } from '../../platform/values/list-params.ts'
import { budgetSorts } from './budgets/budget-list.ts'
import { budgetView, budgetViewOf } from './budgets/budget-view.ts'
import type { BudgetStatus } from './budgets/budgets.ts'
import type { NamedBudget, OrgBudgets } from './budgets/org-budgets.ts'
import { scopes } from './engine/counters/counter-state.ts'

/** The part of limits that this endpoint uses. */
export interface CallerBudgets {
  budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]>
  flushNow(): Promise<void>
}

const row = endpointOf<{ budgets: CallerBudgets; orgBudgets: OrgBudgets }>()

const pageDefault = 50
const pageMax = 200

/** A budget of the organisation. A scope without a budget has figures too, because its spend is always counted. */
const orgBudgetView = budgetView.extend({
  name: z.string().describe('Name of what is bound: organisation, workspace, person, key or agent.'),
  cap_inr: z.number().nullable().describe('Monthly budget in rupees; null = none.'),
  remaining_inr: z.number().nullable().describe('Null without a budget.'),
})

export const limitsEndpoints = {
  orgBudgets: row({
    at: 'GET /me/budgets',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'budgets',
    summary: 'Every monthly budget of the organisation, widest scope first: cap, spent, held by running calls, what is left.',
    input: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(pageMax).default(pageDefault).describe(`Budgets of one page, at most ${pageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
        q: searchText('A part of the name of what is bound, in upper or lower case, or its id.'),
        state: z.enum(['under', 'warned', 'blocked']).optional().describe('warned: 80 percent are spent. blocked: all is.'),
        scope: z.enum(scopes).optional(),
        owner: z.string().optional().describe('A user id, or me: the budgets of the person, of their keys and of the agents that they own.'),
        sort: z.enum(budgetSorts).optional().describe('scope (widest first, the default) or cap (largest first).'),
      }),
    },
    output: z.object({ budgets: z.array(orgBudgetView), next_cursor: z.string().nullable().describe('Null behind the last page.') }),
    errors: ['forbidden', 'bad_request', 'database_unavailable'],
    async handle({ orgBudgets }, { query: { q, owner, ...rest } }, { principal }) {
      const page = await orgBudgets.list(principal.orgId, { ...rest, text: textOf(q), ownerUser: ownerOf(owner, principal) })
      return { budgets: page.budgets.map(orgViewOf), next_cursor: page.nextCursor }
    },
  }),

  setOrgBudget: row({
    at: 'POST /me/budgets',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'budgets',
    summary:
      'Sets the monthly budget (IST month) of the organisation, a workspace, member, key or agent; null clears it. All budgets of a call must have room.',
    input: {
      body: z.strictObject({
        scope: z.enum(scopes).describe('team: the organisation itself, when it is a team organisation.'),
        target_id: z.union([z.number(), z.string()]).nullish().describe('Id of the workspace, member (user), key or agent. Left out for org and team.'),
        monthly_budget_inr: z.number().min(0).nullable().describe('Rupees; null: no limit.'),
        strict: z.boolean().optional().describe('Hold the worst case of every call, so that the budget is never passed. Left out: as it is, at first false.'),
      }),
    },
    output: z.object({ ok: z.literal(true), budget: orgBudgetView }),
    errors: ['forbidden', 'bad_request', 'not_found', 'agent_revoked', 'budget_not_available', 'database_unavailable'],
    async handle({ orgBudgets }, { body }, call) {
      const { scope, target_id, monthly_budget_inr, strict } = body
      const budget = await orgBudgets.set(call.principal.orgId, { scope, targetId: target_id ?? null, monthlyBudgetInr: monthly_budget_inr, strict })
      return { ok: true, budget: orgViewOf(budget) }
    },
  }),

  budgets: row({
    at: 'GET /v1/me/budgets',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'The monthly budgets that apply to this credential: cap, spent, held by running calls, what is left.',
    input: {},
    output: z.object({ budgets: z.array(budgetView) }),
    errors: ['database_unavailable'],
    async handle({ budgets }, _input, call) {
      if (call.principal.kind === 'session') throw fail('invalid_api_key')
      // The flush brings this caller's latest spend into the figures.
      await budgets.flushNow()
      return { budgets: (await budgets.budgetsOf(call.principal)).map(budgetViewOf) }
    },
  }),
}

function orgViewOf(budget: NamedBudget): z.output<typeof orgBudgetView> {
  const view = budgetViewOf(budget)
  return { ...view, name: budget.name, ...(budget.capUinr === null ? { cap_inr: null, remaining_inr: null } : {}) }
}
