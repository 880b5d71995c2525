/** The orders of a list of agents, and the positions in them. */
import { idMax, noPlace, type Place, type PlaceValue, placeCursor, placeIn } from '../../platform/db/list-cursor.ts'
import type { AgentRow } from '../queries.ts'

/** The orders of a list. Each begins with the active agents, except `spend`: an agent that was revoked this month may have spent the most. */
export const agentSorts = ['created', 'name', 'last_call', 'spend'] as const
export type AgentSort = (typeof agentSorts)[number]

/** The orders that an index gives. */
export type IndexedSort = Exclude<AgentSort, 'spend'>

/** A position in an order. Its value is the name, or the time of the last call. */
export type Position = Place

/** A position in the order of spend: after an agent that has spent something, or among those that have spent nothing. */
export type SpendPosition = { readonly kind: 'spent'; readonly uinr: bigint; readonly scopeId: string } | { readonly kind: 'rest'; readonly after: Position }

/** The position before the first agent of each order. */
export const starts: Readonly<Record<IndexedSort, Position>> = {
  created: { isActive: true, value: '', id: idMax },
  name: { isActive: true, value: '', id: 0 },
  last_call: { isActive: true, value: 'infinity', id: idMax },
}

const values: Readonly<Record<IndexedSort, PlaceValue>> = { created: 'none', name: 'name', last_call: 'time' }
/** The cursors of `created` are those of versions that had no other order. */
const namesOfSorts: Readonly<Record<IndexedSort, string>> = { created: '', name: 'name', last_call: 'last_call' }

/** Returns the position of an agent in an order. `sortName` is its name as the database compares it. */
export function positionOf(sort: IndexedSort, row: AgentRow & { readonly sortName: string }): Position {
  const value = { created: '', name: row.sortName, last_call: row.lastCallAt?.toISOString() ?? '-infinity' }[sort]
  return { isActive: row.status === 'active', value, id: row.id }
}

/** Returns the cursor of a position. */
export const cursorText = (sort: IndexedSort, position: Position): string => placeCursor(namesOfSorts[sort], position)

/** Returns the position of a cursor. Throws `bad_request` for a text that is no cursor of this order. */
export const positionIn = (sort: IndexedSort, cursor: string): Position => placeIn(namesOfSorts[sort], cursor, values[sort])

/** Returns the cursor of a position in the order of spend. */
export function spendCursor(position: SpendPosition): string {
  return position.kind === 'spent' ? `spend.${position.uinr}.${position.scopeId}` : `rest.${cursorText('created', position.after)}`
}

/** Returns the position of a cursor in the order of spend. Throws `bad_request`. */
export function spendPositionIn(cursor: string): SpendPosition {
  if (cursor.startsWith('rest.')) return { kind: 'rest', after: positionIn('created', cursor.slice('rest.'.length)) }
  const [, uinr, scopeId] = /^spend\.(\d{1,18})\.(\d{1,10})$/.exec(cursor) ?? []
  if (uinr === undefined || scopeId === undefined) throw noPlace()
  return { kind: 'spent', uinr: BigInt(uinr), scopeId }
}
