/** Pages of the budgets of an organisation. Names and owners belong to other domains, so they are looked up for each batch of a walk. */
import type { Db } from '../../../platform/db/db.ts'
import { noPlace } from '../../../platform/db/list-cursor.ts'
import { walkedMax } from '../../../platform/db/walked-page.ts'
import { isScope, type Scope, scopes } from '../engine/counters/counter-state.ts'
import { type WalkedBudget, walks } from './budget-list-queries.ts'
import type { BudgetTargets } from './budget-targets.ts'
import type { BudgetStatus } from './budgets.ts'
import { type BudgetPeriod, budgetPeriods, isBudgetPeriod } from './periods/period.ts'

/** The orders of a list of budgets. */
export const budgetSorts = ['scope', 'cap'] as const
export type BudgetSort = (typeof budgetSorts)[number]

/** The budgets that a request asks for. A field that is left out chooses all. */
export interface BudgetFilter {
  /** A part of the name of what the budget binds, in upper or lower case, or its id. */
  readonly text?: string | undefined
  readonly state?: BudgetStatus['state'] | undefined
  readonly scope?: Scope | undefined
  /** The person whose own budget, keys and agents are chosen. */
  readonly ownerUser?: number | undefined
  readonly sort?: BudgetSort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** A budget with the name of what it binds. */
export interface BudgetRef {
  readonly scope: Scope
  readonly scopeId: string
  readonly period: BudgetPeriod
  readonly name: string
}

export interface BudgetListDeps {
  readonly db: Db
  readonly targets: BudgetTargets
  /** The names of the running periods, in the order of `budgetPeriods`. */
  readonly periods: readonly string[]
}

/** Number of budgets that a filter reads together. */
const batchMax = 1_000
const aboveAllCaps = 10n ** 18n

/**
 * Returns a page of the budgets that a filter chooses, and the cursor of the next page. Budgets whose owner is gone are left out. A page ends after
 * `walkedMax` budgets were read. Throws `bad_request` for an invalid cursor.
 */
export async function pageOfBudgets(
  { db, targets, periods }: BudgetListDeps,
  orgId: number,
  filter: BudgetFilter,
): Promise<{ refs: readonly BudgetRef[]; nextCursor: string | null }> {
  const { sort = 'scope', cursor, limit } = filter
  const isFiltered = [filter.text, filter.state, filter.scope, filter.ownerUser].some(value => value !== undefined)
  const readMax = isFiltered ? batchMax : limit + 1
  const found: BudgetRef[] = []
  let position = cursor === undefined ? startOf(filter, sort) : positionIn(sort, cursor)
  let last: WalkedBudget | null = null
  let lastFound: WalkedBudget | null = null
  for (let read = 0; read < walkedMax; read += readMax) {
    const rows = await db.many(walks[sort], orgId, position, filter.scope ?? null, filter.state ?? null, periods, readMax)
    const matching = rows.filter(row => row.isMatch)
    const names = await namesOf(targets, orgId, matching, filter)
    for (const [i, row] of matching.entries()) {
      const name = names[i]
      if (name === undefined) continue
      if (found.length === limit) return { refs: found, nextCursor: lastFound === null ? null : cursorOf(sort, lastFound) }
      found.push({ scope: row.scope, scopeId: row.scopeId, period: row.period, name })
      lastFound = row
    }
    last = rows.at(-1) ?? null
    if (last === null || last.place < readMax) return { refs: found, nextCursor: null }
    position = positionOf(last)
  }
  return { refs: found, nextCursor: last === null ? null : cursorOf(sort, last) }
}

/** Returns the names in the order of the rows. Undefined for an owner that is gone, and for a row that the text or the owner does not choose. */
async function namesOf(targets: BudgetTargets, orgId: number, rows: readonly WalkedBudget[], filter: BudgetFilter): Promise<(string | undefined)[]> {
  const byScope = new Map<Scope, ReadonlyMap<number, string>>()
  for (const scope of new Set(rows.map(row => row.scope))) {
    const ids = rows.flatMap(row => (row.scope === scope ? [Number(row.scopeId)] : []))
    byScope.set(scope, await namesIn(targets, orgId, scope, ids, filter.ownerUser))
  }
  const text = filter.text?.toLowerCase()
  return rows.map(row => {
    const name = byScope.get(row.scope)?.get(Number(row.scopeId))
    return text === undefined || row.scopeId === text || name?.toLowerCase().includes(text) ? name : undefined
  })
}

async function namesIn(
  targets: BudgetTargets,
  orgId: number,
  scope: Scope,
  ids: readonly number[],
  ownerUser: number | undefined,
): Promise<ReadonlyMap<number, string>> {
  if (scope === 'org' || scope === 'team') return ownerUser === undefined ? new Map([[orgId, (await targets.org(orgId)).name]]) : new Map()
  const owned = ownerUser === undefined ? ids : await targets.owned(orgId, scope, ids, ownerUser)
  return owned.length === 0 ? new Map() : targets.names(orgId, scope, owned)
}

/** A walk in the order of scopes begins at the scope of the filter, and does not read the wider ones. */
function startOf({ scope }: BudgetFilter, sort: BudgetSort): readonly string[] {
  if (sort === 'cap') return [String(aboveAllCaps), '0', '0', '0']
  return ['0', String(scope === undefined ? 0 : scopes.indexOf(scope)), '9999999999', '9']
}

const positionOf = ({ capUinr, scope, scopeId, period }: Pick<WalkedBudget, 'capUinr' | 'scope' | 'scopeId' | 'period'>): readonly string[] => [
  String(capUinr),
  String(scopes.indexOf(scope) + 1),
  scopeId,
  String(budgetPeriods.indexOf(period) + 1),
]

/** The cursors of months are those of versions that had no other period, and the cursors of `scope` those of versions that had no other order. */
const cursorOf = (sort: BudgetSort, { capUinr, scope, scopeId, period }: WalkedBudget): string =>
  `${sort === 'cap' ? `cap.${capUinr}.` : ''}${scope}:${scopeId}${period === 'month' ? '' : `:${period}`}`

function positionIn(sort: BudgetSort, cursor: string): readonly string[] {
  const [, cap, scope = '', scopeId = '', period = 'month'] = /^(?:cap\.(\d{1,18})\.)?([a-z]+):(\d{1,10})(?::([a-z]+))?$/.exec(cursor) ?? []
  if (!isScope(scope) || !isBudgetPeriod(period) || (cap !== undefined) !== (sort === 'cap')) throw noPlace()
  return positionOf({ capUinr: BigInt(cap ?? 0), scope, scopeId, period })
}
