import { z } from 'zod'
import { cursorCharsMax } from '../../platform/db/list-cursor.ts'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import { ownerOf, searchText, textOf } from '../../platform/values/list-params.ts'
import { budgetSorts } from './budgets/budget-list.ts'
import { budgetView, budgetViewOf } from './budgets/budget-view.ts'
import type { BudgetStatus } from './budgets/budgets.ts'
import type { BudgetParams, NamedBudget, OrgBudgets } from './budgets/org-budgets.ts'
import type { BudgetZoneSetting, BudgetZoneView } from './budgets/periods/budget-zone.ts'
import { type BudgetPeriod, budgetPeriods } from './budgets/periods/period.ts'
import { scopes } from './engine/counters/counter-state.ts'

/** The part of limits that this endpoint uses. */
export interface CallerBudgets {
  budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]>
  flushNow(): Promise<void>
}

const row = endpointOf<{ budgets: CallerBudgets; orgBudgets: OrgBudgets; budgetZones: BudgetZoneSetting }>()

const pageDefault = 50
const pageMax = 200
/** The most marks of a budget that an owner adds. */
const warnPercentMax = 10

/** The amount of a request. */
interface AmountFields {
  readonly monthly_budget_inr?: number | null | undefined
  readonly period?: BudgetPeriod | undefined
  readonly budget_inr?: number | null | undefined
}

/** A budget of the organisation. A scope without a budget has figures too, because its spend is always counted. */
const orgBudgetView = budgetView.extend({
  name: z.string().describe('Name of what is bound: organisation, workspace, person, key or agent.'),
  cap_inr: z.number().nullable().describe('Budget of the period in rupees; null = none.'),
  remaining_inr: z.number().nullable().describe('Null without a budget.'),
})

const zoneView = z.object({
  time_zone: z.string(),
  periods: z.array(
    z.object({
      period: z.enum(['month', 'week', 'day']),
      time_zone: z.string().describe('The zone of the running period.'),
      resets_at: z.string().describe('The end of the running period. From then on the period follows the time zone of the organisation.'),
    }),
  ),
})

export const limitsEndpoints = {
  orgBudgets: row({
    at: 'GET /me/budgets',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'budgets',
    summary: 'Every budget of the organisation, widest scope first and in it the longest period: cap, spent, held by running calls, what is left.',
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
      'Sets a budget of the organisation, a workspace, member, key or agent for a day, week (from Monday), month or for ever; null clears it. All budgets of a call must have room.',
    input: {
      body: z.strictObject({
        scope: z.enum(scopes).describe('team: the organisation itself, when it is a team organisation.'),
        target_id: z.union([z.number(), z.string()]).nullish().describe('Id of the workspace, member (user), key or agent. Left out for org and team.'),
        monthly_budget_inr: z
          .number()
          .min(0)
          .nullable()
          .optional()
          .describe('Rupees of a month; null: no limit. The same as the period month with budget_inr.'),
        period: z.enum(budgetPeriods).optional().describe("Goes with budget_inr. Calendar periods in the time zone of the organisation's budgets."),
        budget_inr: z.number().min(0).nullable().optional().describe('Rupees of the period; null: no limit.'),
        warn_percent: z
          .array(z.int().min(1).max(99))
          .max(warnPercentMax)
          .optional()
          .describe('Sends budget.warn at these percents too. 80 and 100 are always marks. Left out: as it is, at first none.'),
        strict: z.boolean().optional().describe('Hold the worst case of every call, so that the budget is never passed. Left out: as it is, at first false.'),
      }),
    },
    output: z.object({ ok: z.literal(true), budget: orgBudgetView }),
    errors: ['forbidden', 'bad_request', 'not_found', 'agent_revoked', 'budget_not_available', 'database_unavailable'],
    async handle({ orgBudgets }, { body }, call) {
      const { scope, target_id, strict, warn_percent } = body
      const budget = await orgBudgets.set(call.principal.orgId, {
        scope,
        targetId: target_id ?? null,
        ...amountOf(body),
        strict,
        warnPercent: warn_percent === undefined ? undefined : [...new Set(warn_percent)].sort((a, b) => a - b),
      })
      return { ok: true, budget: orgViewOf(budget) }
    },
  }),

  budgetZone: row({
    at: 'GET /me/budgets/time-zone',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'budgets',
    summary: "The time zone of the organisation's budgets, and when the running day, week and month end.",
    input: {},
    output: zoneView,
    errors: ['forbidden', 'database_unavailable'],
    async handle({ budgetZones }, _input, call) {
      return zoneViewOf(await budgetZones.get(call.principal.orgId))
    },
  }),

  setBudgetZone: row({
    at: 'PUT /me/budgets/time-zone',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'budgets',
    summary: "Sets the time zone of the organisation's budgets. The running day, week and month keep their zone until they end. Reports stay in Indian time.",
    input: { body: z.strictObject({ time_zone: z.string().max(64).describe('A name of the IANA database, such as Europe/Berlin.') }) },
    output: z.object({ ok: z.literal(true), ...zoneView.shape }),
    errors: ['forbidden', 'bad_request', 'database_unavailable'],
    async handle({ budgetZones }, { body }, call) {
      return { ok: true, ...zoneViewOf(await budgetZones.set(call.principal.orgId, body.time_zone)) }
    },
  }),

  budgets: row({
    at: 'GET /v1/me/budgets',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'The budgets that apply to this credential, of every period: cap, spent, held by running calls, what is left.',
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

/** Returns the amount of a budget and its period. The amount is in one of two fields. Throws `bad_request`. */
function amountOf({ monthly_budget_inr, period, budget_inr }: AmountFields): Pick<BudgetParams, 'period' | 'budgetInr' | 'field'> {
  if (monthly_budget_inr !== undefined && budget_inr === undefined && period === undefined)
    return { period: 'month', budgetInr: monthly_budget_inr, field: 'monthly_budget_inr' }
  if (monthly_budget_inr === undefined && budget_inr !== undefined && period !== undefined) return { period, budgetInr: budget_inr, field: 'budget_inr' }
  throw fail('bad_request', { message: 'Send monthly_budget_inr, or period and budget_inr.' })
}

function zoneViewOf({ zone, running }: BudgetZoneView): z.output<typeof zoneView> {
  return {
    time_zone: zone,
    periods: running.map(({ period, zone: own, endsAtMs }) => ({ period, time_zone: own, resets_at: new Date(endsAtMs).toISOString() })),
  }
}

function orgViewOf(budget: NamedBudget): z.output<typeof orgBudgetView> {
  const view = budgetViewOf(budget)
  return { ...view, name: budget.name, ...(budget.capUinr === null ? { cap_inr: null, remaining_inr: null } : {}) }
}
