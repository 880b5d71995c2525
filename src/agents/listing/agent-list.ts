import type { BudgetStatus } from '../../gateway/limits/budgets/budgets.ts'
import type { Db } from '../../platform/db/db.ts'
import type { AgentBudgets, BudgetBook } from '../agent-budgets.ts'
import type { AgentPage } from '../agent-view.ts'
import { type AgentRow, findAgents } from '../queries.ts'
import type { AgentViews } from './agent-views.ts'
import {
  type AgentSort,
  cursorText,
  type IndexedSort,
  type Position,
  positionIn,
  positionOf,
  type SpendPosition,
  spendCursor,
  spendPositionIn,
  starts,
} from './list-cursor.ts'
import { type Base, type Conditions, counts, findListed, type ListedRow, lists } from './list-queries.ts'

export interface AgentListDeps {
  readonly db: Db
  readonly book: BudgetBook
  readonly budgets: Pick<AgentBudgets, 'list'>
  readonly views: AgentViews
}

/** The agents that a request asks for. A field that is left out chooses all. */
export interface AgentFilter {
  /** A part of the name, in upper or lower case, or an id. */
  readonly text?: string | undefined
  readonly state?: 'active' | 'paused' | 'revoked' | undefined
  readonly ownerUser?: number | undefined
  /** `none`: only agents that no agent is above. */
  readonly parentId?: number | 'none' | undefined
  /** Only agents that have spent at least this share of their monthly budget, in percent. The order is then that of spend. */
  readonly usedPercent?: number | undefined
  readonly sort?: AgentSort | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Maximum number of agents in one list. */
const agentsListedMax = 1_000
/** Maximum number of bytes of the rules of all agents in one list. A page ends before it has more. Decision 0526 says why. */
const listedRulesMaxBytes = 1024 * 1024
/** Maximum number of agents that a search for a text reads for one page. A page ends there, also when it is not full. */
const searchedMax = 25_000
/** Maximum number of agents that are read for a total. */
const countedMax = 100_000
/** Number of agents with spend that are compared with the filter together, and how often for one page. */
const spendersMax = 1_000
const spenderRoundsMax = 25
/** Number of agents whose rows are read together. Each can have 40 KB of rules. */
const rowsReadMax = 50
/** Maximum number of pages without spend that one page of the order of spend reads. */
const restRoundsMax = 25
/** The same for a search, which reads many agents for each of them. */
const restRoundsOfSearchMax = 4

/** The part of a list that was read, before its views are made. */
interface Walked {
  readonly rows: readonly AgentRow[]
  readonly next: Position | null
}

/** Lists agents page by page. Each order except spend is a walk on an index. Decision 0571 says why. */
export class AgentList {
  readonly #deps: AgentListDeps

  constructor(deps: AgentListDeps) {
    this.#deps = deps
  }

  /** Returns a page of the agents that a filter chooses. Throws `bad_request` for an invalid cursor. */
  async page(orgId: number, filter: AgentFilter): Promise<AgentPage> {
    const { usedPercent, cursor, limit = agentsListedMax } = filter
    const { sort = usedPercent === undefined ? 'created' : 'spend' } = filter
    if (sort === 'spend') return this.#bySpend(orgId, filter, limit, cursor === undefined ? null : spendPositionIn(cursor))
    const { rows, next } = await this.#walk(orgId, filter, sort, limit, cursor === undefined ? starts[sort] : positionIn(sort, cursor))
    return { agents: await this.#deps.views.many(orgId, rows), nextCursor: next === null ? null : cursorText(sort, next) }
  }

  /** Returns the number of agents that a filter chooses, among 100,000 at most. */
  async total(orgId: number, filter: AgentFilter): Promise<number> {
    return (await this.#deps.db.one(counts[baseOf(filter)], orgId, ...conditionsOf(filter), statusesOf(filter), countedMax)).total
  }

  async #walk(orgId: number, filter: AgentFilter, sort: IndexedSort, limit: number, after: Position): Promise<Walked> {
    const scanMax = filter.text === undefined ? limit + 1 : searchedMax
    const position = [String(isFirstGroup(sort) ? after.isActive : !after.isActive), after.value, String(after.id)]
    const rows = await this.#deps.db.many(
      lists[sort][baseOf(filter)],
      orgId,
      ...conditionsOf(filter),
      groupsOf(filter, sort),
      position,
      scanMax,
      limit + 1,
      listedRulesMaxBytes,
    )
    const matching = rows.filter(row => row.isMatch)
    const shown = matching.slice(0, limit)
    return { rows: shown, next: nextOf(sort, rows, shown, { hasMore: matching.length > limit, scanMax }) }
  }

  /**
   * Returns a page in the order of this month's spend. The agents that have spent something come first. The others follow in the order of their
   * creation, unless the filter asks for a share of a budget, which they have not spent.
   */
  async #bySpend(orgId: number, filter: AgentFilter, limit: number, start: SpendPosition | null): Promise<AgentPage> {
    const rows: AgentRow[] = []
    let position: SpendPosition = start ?? { kind: 'spent', uinr: spendMaxUinr, scopeId: '' }
    for (let round = 0; round < spenderRoundsMax && position.kind === 'spent' && !isFull(rows, limit); round++)
      position = await this.#takeSpenders(orgId, filter, limit, position, rows)
    let isEnd = position.kind === 'rest' && filter.usedPercent !== undefined
    const roundsMax = filter.text === undefined ? restRoundsMax : restRoundsOfSearchMax
    for (let round = 0; round < roundsMax && position.kind === 'rest' && !isFull(rows, limit) && !isEnd; round++) {
      const { rows: walked, next } = await this.#walk(orgId, filter, 'created', limit - rows.length, position.after)
      const spent = await this.#deps.budgets.list(
        orgId,
        walked.map(row => row.id),
      )
      rows.push(...walked.filter(row => !hasSpent(spent.get(row.id))))
      isEnd = next === null
      if (next !== null) position = { kind: 'rest', after: next }
    }
    return { agents: await this.#deps.views.many(orgId, rows), nextCursor: isEnd ? null : spendCursor(position) }
  }

  /** Adds the next agents that have spent something. Returns the position after them. */
  async #takeSpenders(orgId: number, filter: AgentFilter, limit: number, after: SpendPosition & { kind: 'spent' }, into: AgentRow[]): Promise<SpendPosition> {
    const { db, book } = this.#deps
    const spenders = await book.topAgents(orgId, { spentUinr: after.uinr, scopeId: after.scopeId }, spendersMax, filter.usedPercent ?? null)
    const ids = spenders.flatMap(({ scopeId, isChosen }) => (isChosen ? [Number(scopeId)] : []))
    const found = ids.length === 0 ? [] : await db.many(findListed, orgId, ...conditionsOf(filter), statusesOf(filter), ids)
    const isListed = new Set(found.map(row => row.id))
    const listed = spenders.filter(spender => isListed.has(Number(spender.scopeId)))
    for (let at = 0; at < listed.length; at += rowsReadMax) {
      const part = listed.slice(at, at + rowsReadMax)
      const partIds = part.map(spender => Number(spender.scopeId))
      const rows = new Map((await db.many(findAgents, orgId, partIds)).map(row => [row.id, row]))
      for (const { scopeId, spentUinr } of part) {
        const row = rows.get(Number(scopeId))
        if (row !== undefined) into.push(row)
        if (isFull(into, limit)) return { kind: 'spent', uinr: spentUinr, scopeId }
      }
    }
    const last = spenders.at(-1)
    if (last === undefined || spenders.length < spendersMax) return { kind: 'rest', after: starts.created }
    return { kind: 'spent', uinr: last.spentUinr, scopeId: last.scopeId }
  }
}

/** Above every spend that a counter can have. */
const spendMaxUinr = 10n ** 18n - 1n

/** Returns whether a page takes no more agents: it has its number of them, or as many bytes of rules as a list may have. */
function isFull(rows: readonly AgentRow[], limit: number): boolean {
  const bytes = rows.reduce((sum, row) => sum + lengthOf(row.allowedModels) + lengthOf(row.allowedProviders) + lengthOf(row.allowedTools), 0)
  return rows.length >= limit || bytes > listedRulesMaxBytes
}

const lengthOf = (ids: readonly string[] | null): number => (ids === null ? 0 : ids.reduce((sum, id) => sum + id.length, 0))

const isFirstGroup = (sort: IndexedSort): boolean => sort !== 'name'
const hasSpent = (status: BudgetStatus | undefined): boolean => status !== undefined && status.spentUinr > 0n

function baseOf({ ownerUser, parentId }: AgentFilter): Base {
  if (typeof parentId === 'number') return 'parent'
  return ownerUser === undefined ? 'all' : 'owner'
}

function conditionsOf({ text, state, ownerUser, parentId }: AgentFilter): Conditions {
  const isPaused = state === undefined || state === 'revoked' ? null : state === 'paused'
  return [parentId === 'none', isPaused, text ?? null, ownerUser ?? null, typeof parentId === 'number' ? parentId : null]
}

const statusesOf = ({ state }: AgentFilter): readonly string[] => (state === undefined ? ['active', 'revoked'] : [state === 'revoked' ? 'revoked' : 'active'])

/** Returns the least and the greatest value of the first column of the order. */
function groupsOf({ state }: AgentFilter, sort: IndexedSort): readonly boolean[] {
  if (state === undefined) return [false, true]
  const isRevoked = state === 'revoked'
  return isFirstGroup(sort) ? [!isRevoked, !isRevoked] : [isRevoked, isRevoked]
}

/** Returns the position of the next page. Null when the list has ended. */
function nextOf(
  sort: IndexedSort,
  rows: readonly ListedRow[],
  shown: readonly ListedRow[],
  { hasMore, scanMax }: { readonly hasMore: boolean; readonly scanMax: number },
): Position | null {
  const last = rows.at(-1)
  if (last === undefined) return null
  const end = hasMore ? shown.at(-1) : last.found > rows.length || last.place === scanMax ? last : undefined
  return end === undefined ? null : positionOf(sort, end)
}
