import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'

/** What the address of the list of budgets says, and what it asks for. */

/** In the order of need. */
export const budgetStates = ['blocked', 'warned', 'under'] as const
export const budgetScopes = ['org', 'workspace', 'member', 'key', 'agent'] as const
export type BudgetState = (typeof budgetStates)[number]
export type Budget = ReplyOf<'orgBudgets'>['budgets'][number]

/** The filters of the list, as the gateway takes them. */
export interface BudgetFilterValues {
  readonly q?: string
  readonly state?: BudgetState
  readonly scope?: (typeof budgetScopes)[number]
}

/** `budget` opens one budget beside the list, as its scope and id, and `new` the form for another one. */
export interface BudgetsSearch extends BudgetFilterValues {
  readonly budget?: string
  readonly new?: true
}

const pageSize = 100

/** Where the next page begins: the state whose budgets are read, and the cursor in it. */
interface Place {
  readonly state: BudgetState
  readonly cursor: string | null
}

interface NeedPage {
  readonly budgets: readonly Budget[]
  readonly next: Place | null
}

const shareOf = ({ cap_inr: cap, spent_inr: spent, held_inr: held, in_doubt_inr: inDoubt }: Budget): number =>
  cap === null ? 0 : (spent + held + inDoubt) / cap

/**
 * Reads a page in the order of need: used up, nearly used up, then the others, each state from the gateway. Within a page the most used budget comes first.
 * Decision 0770 says why.
 */
async function readPage({ state: chosen, ...filters }: BudgetFilterValues, first: Place, signal: AbortSignal): Promise<NeedPage> {
  const budgets: Budget[] = []
  let place: Place | null = first
  while (place !== null && budgets.length < pageSize) {
    const { state, cursor }: Place = place
    const query = { ...filters, state, sort: 'cap' as const, limit: pageSize, ...(cursor === null ? {} : { cursor }) }
    const page: ReplyOf<'orgBudgets'> = await api('orgBudgets', { query, signal })
    budgets.push(...[...page.budgets].sort((a, b) => shareOf(b) - shareOf(a)))
    place = page.next_cursor !== null ? { state, cursor: page.next_cursor } : chosen === undefined ? placeAfter(state) : null
    // A search that found nothing in many budgets goes on with the next page, so that the list can be left meanwhile.
    if (page.next_cursor !== null) break
  }
  return { budgets, next: place }
}

function placeAfter(state: BudgetState): Place | null {
  const next = budgetStates[budgetStates.indexOf(state) + 1]
  return next === undefined ? null : { state: next, cursor: null }
}

/** The read of the budgets that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const budgetsQuery = (filters: BudgetFilterValues) =>
  infiniteQueryOptions({
    queryKey: ['orgBudgets', 'by need', filters],
    initialPageParam: { state: filters.state ?? budgetStates[0], cursor: null } as Place,
    queryFn: ({ pageParam, signal }) => readPage(filters, pageParam, signal),
    getNextPageParam: page => page.next ?? undefined,
  })
