import { z } from 'zod'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { scopes } from '../engine/counters/counter-state.ts'
import type { BudgetStatus } from './budgets.ts'
import { budgetPeriods } from './periods/period.ts'

/** A budget as callers see it, in rupees. */
export const budgetView = z.object({
  scope: z.enum(scopes),
  id: z.string(),
  period: z.enum(budgetPeriods).describe('ever: of all time, from the moment at which it was set.'),
  cap_inr: z.number(),
  strict: z.boolean(),
  spent_inr: z.number(),
  held_inr: z.number(),
  in_doubt_inr: z.number(),
  remaining_inr: z.number(),
  increase_inr: z.number().optional().describe('What a person has granted beside the cap. Absent when nothing is.'),
  increase_until: z.string().optional().describe('The end of the increase.'),
  state: z.enum(['under', 'warned', 'blocked']),
  warn_percent: z.array(z.int()).describe('The marks besides 80 and 100 percent.'),
  resets_at: z.string().nullable().describe('The end of the period. Null when it never ends.'),
})
export type BudgetView = z.output<typeof budgetView>

/** Returns a budget in the fields of the API. The remaining amount excludes held amounts and amounts in doubt. */
export function budgetViewOf(status: BudgetStatus): BudgetView {
  const cap = status.capUinr ?? 0n
  const { increase } = status
  const left = cap + (increase?.uinr ?? 0n) - status.spentUinr - status.heldUinr - status.inDoubtUinr
  return {
    scope: status.scope,
    id: status.id,
    period: status.period,
    cap_inr: inrFromUinr(cap),
    strict: status.strict,
    spent_inr: inrFromUinr(status.spentUinr),
    held_inr: inrFromUinr(status.heldUinr),
    in_doubt_inr: inrFromUinr(status.inDoubtUinr),
    remaining_inr: inrFromUinr(left > 0n ? left : 0n),
    ...(increase === null ? {} : { increase_inr: inrFromUinr(increase.uinr), increase_until: new Date(increase.untilMs).toISOString() }),
    state: status.state,
    warn_percent: [...status.warnPercent],
    resets_at: status.resetsAtMs === null ? null : new Date(status.resetsAtMs).toISOString(),
  }
}

/** Returns the budget with the least remaining amount among those that bind one caller. It ends the caller's calls first. Null without budgets. */
export function tightestOf(statuses: readonly BudgetStatus[]): BudgetView | null {
  const views = statuses.map(budgetViewOf)
  return views.length === 0 ? null : views.reduce((tightest, view) => (view.remaining_inr < tightest.remaining_inr ? view : tightest))
}
