import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { inrFromUinr } from '../../platform/money.ts'
import type { BearerPrincipal } from '../../platform/principal.ts'
import type { BudgetStatus } from './budgets.ts'

/** What the row needs of limits. */
export interface CallerBudgets {
  budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]>
  flushNow(): Promise<void>
}

const row = endpointOf<{ budgets: CallerBudgets }>()

const budgetView = z.object({
  scope: z.enum(['org', 'team', 'workspace', 'member', 'key', 'agent']),
  id: z.string(),
  cap_inr: z.number(),
  strict: z.boolean(),
  spent_inr: z.number(),
  held_inr: z.number(),
  in_doubt_inr: z.number(),
  remaining_inr: z.number(),
  state: z.enum(['under', 'warned', 'blocked']),
  resets_at: z.string(),
})

export const limitsEndpoints = {
  budgets: row({
    at: 'GET /v1/me/budgets',
    auth: 'key',
    access: {},
    tag: 'usage',
    summary: 'The monthly budgets that bind this credential: cap, spent, held by running calls, what is left.',
    input: {},
    output: z.object({ budgets: z.array(budgetView) }),
    errors: ['database_unavailable'],
    async handle({ budgets }, _input, call) {
      if (call.principal.kind === 'session') throw fail('invalid_api_key')
      // What this caller has just used is in the figures that it reads.
      await budgets.flushNow()
      return { budgets: (await budgets.budgetsOf(call.principal)).map(viewOf) }
    },
  }),
}

function viewOf(status: BudgetStatus): z.output<typeof budgetView> {
  const cap = status.capUinr ?? 0n
  const left = cap - status.spentUinr - status.heldUinr - status.inDoubtUinr
  return {
    scope: status.scope,
    id: status.id,
    cap_inr: inrFromUinr(cap),
    strict: status.strict,
    spent_inr: inrFromUinr(status.spentUinr),
    held_inr: inrFromUinr(status.heldUinr),
    in_doubt_inr: inrFromUinr(status.inDoubtUinr),
    remaining_inr: inrFromUinr(left > 0n ? left : 0n),
    state: status.state,
    resets_at: new Date(status.resetsAtMs).toISOString(),
  }
}
