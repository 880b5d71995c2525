import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api } from '../../api/call.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'
import type { BoundBudget, BudgetPeriod } from './form/consequence.ts'
import { type Budget, type BudgetFilterValues, type budgetScopes, budgetsQuery } from './search.ts'

/** Returns the budgets that the filters choose in the order of need, in the pages that were read so far. Null reads nothing. */
export function useBudgets(filters: BudgetFilterValues, isEnabled: boolean) {
  return useInfiniteQuery({
    ...budgetsQuery(filters),
    enabled: isEnabled,
    placeholderData: keepPreviousData,
    select: data => data.pages.flatMap(({ budgets }) => budgets),
  })
}

/** Names a budget in the address and among the rows. */
export const refOf = ({ scope, id, period }: Pick<Budget, 'scope' | 'id' | 'period'>): string => `${scope}:${id}${period === 'month' ? '' : `:${period}`}`

/** Returns a budget of the list as the form takes it. */
export const boundOf = ({ scope, id, period, name, cap_inr, spent_inr, held_inr, in_doubt_inr, strict }: Budget): BoundBudget => ({
  scope,
  id: scope === 'org' || scope === 'team' ? null : Number(id),
  name,
  period,
  capInr: cap_inr,
  spentInr: spent_inr,
  heldInr: held_inr,
  inDoubtInr: in_doubt_inr,
  isStrict: strict,
})

export type TargetScope = Exclude<(typeof budgetScopes)[number], 'org'>

/** Something that can have a budget, with the one that it has. */
export interface Target extends ComboOption {
  readonly capInr: number | null
  readonly spentInr: number
}

const foundMax = 20

const knownMax = 20

/** Returns the budget of a period that something has, or null. A budget of a month has its amounts beside its owner, so it is not read here. */
export async function findBudget(scope: (typeof budgetScopes)[number], id: string | null, period: BudgetPeriod, signal: AbortSignal): Promise<Budget | null> {
  const { budgets } = await api('orgBudgets', { query: { scope, limit: knownMax, ...(id === null ? {} : { q: id }) }, signal })
  return budgets.find(found => found.period === period && (id === null || found.id === id)) ?? null
}

/** Finds what a budget of this scope can bind, by a part of its name. The gateway searches. */
export async function findTargets(scope: TargetScope, words: string, signal: AbortSignal): Promise<readonly Target[]> {
  const query = { limit: foundMax, ...(words.trim() === '' ? {} : { q: words.trim() }) }
  switch (scope) {
    case 'workspace':
      return (await api('listWorkspaces', { query: { ...query, state: 'active' }, signal })).workspaces.map(found => ({
        value: String(found.id),
        label: found.name,
        capInr: found.monthly_budget_inr,
        spentInr: found.spend_month_inr,
      }))
    case 'member':
      return (await api('listMembers', { query: { ...query, state: 'active' }, signal })).members.map(found => ({
        value: String(found.uid),
        label: found.name ?? found.email,
        ...(found.name === null ? {} : { hint: found.email }),
        capInr: found.monthly_budget_inr,
        spentInr: found.spend_month_inr ?? 0,
      }))
    case 'key':
      return (await api('listKeys', { query, signal })).keys.map(found => ({
        value: String(found.id),
        label: found.name,
        hint: `${found.prefix}…`,
        capInr: found.budget_inr,
        spentInr: found.spend_month_inr,
      }))
    case 'agent':
      return (await api('listAgentsConsole', { query, signal })).agents
        .filter(({ status }) => status !== 'revoked')
        .map(found => ({ value: String(found.id), label: found.name, capInr: found.monthly_budget_inr, spentInr: found.spend_month_inr }))
  }
}
