/** The orders of a list of agents, and the positions in them. */
import { fail } from '../../platform/errors.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { AgentRow } from '../queries.ts'

/** The orders of a list. Each begins with the active agents, except `spend`: an agent that was revoked this month may have spent the most. */
export const agentSorts = ['created', 'name', 'last_call', 'spend'] as const
export type AgentSort = (typeof agentSorts)[number]

/** The orders that an index gives. */
export type IndexedSort = Exclude<AgentSort, 'spend'>

/** A position in an order: the rest of the list comes after it. */
export interface Position {
  readonly isActive: boolean
  /** The value of the order as text: the name, or the time of the last call. Empty for the order `created`. */
  readonly value: string
  readonly id: number
}

/** A position in the order of spend: after an agent that has spent something, or among those that have spent nothing. */
export type SpendPosition = { readonly kind: 'spent'; readonly uinr: bigint; readonly scopeId: string } | { readonly kind: 'rest'; readonly after: Position }

const idMax = 2 ** 31 - 1
/** The position before the first agent of each order. */
export const starts: Readonly<Record<IndexedSort, Position>> = {
  created: { isActive: true, value: '', id: idMax },
  name: { isActive: true, value: '', id: 0 },
  last_call: { isActive: true, value: 'infinity', id: idMax },
}

/** Maximum length of a cursor. A name has at most 100 characters, and a character at most 4 bytes. */
export const cursorCharsMax = 1_000
const valueShape: Readonly<Record<IndexedSort, RegExp>> = {
  created: /^$/,
  name: /^[^\p{Cc}]{0,400}$/u,
  last_call: /^(-infinity|[12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/,
}

/** Returns the position of an agent in an order. `sortName` is its name as the database compares it. */
export function positionOf(sort: IndexedSort, row: AgentRow & { readonly sortName: string }): Position {
  const value = { created: '', name: row.sortName, last_call: row.lastCallAt?.toISOString() ?? '-infinity' }[sort]
  return { isActive: row.status === 'active', value, id: row.id }
}

/** Returns the cursor of a position. The cursors of `created` are those of versions that had no other order. */
export function cursorText(sort: IndexedSort, { isActive, value, id }: Position): string {
  const place = `${isActive ? 'a' : 'r'}${id}`
  return sort === 'created' ? place : `${sort}.${place}.${Buffer.from(value).toString('base64url')}`
}

/** Returns the position of a cursor. Throws `bad_request` for a text that is no cursor of this order. */
export function positionIn(sort: IndexedSort, cursor: string): Position {
  const [place = '', encoded = ''] = sort === 'created' ? [cursor] : cursor.startsWith(`${sort}.`) ? cursor.slice(sort.length + 1).split('.') : []
  const id = rowId(place.slice(1))
  const value = Buffer.from(encoded, 'base64url').toString()
  const isTime = sort !== 'last_call' || value === '-infinity' || isDate(value)
  if (cursor.length > cursorCharsMax || id === null || !/^[ar]/.test(place) || !valueShape[sort].test(value) || !isTime) throw noCursor()
  return { isActive: place.startsWith('a'), value, id }
}

/** Returns the cursor of a position in the order of spend. */
export function spendCursor(position: SpendPosition): string {
  return position.kind === 'spent' ? `spend.${position.uinr}.${position.scopeId}` : `rest.${cursorText('created', position.after)}`
}

/** Returns the position of a cursor in the order of spend. Throws `bad_request`. */
export function spendPositionIn(cursor: string): SpendPosition {
  if (cursor.startsWith('rest.')) return { kind: 'rest', after: positionIn('created', cursor.slice('rest.'.length)) }
  const [, uinr, scopeId] = /^spend\.(\d{1,18})\.(\d{1,10})$/.exec(cursor) ?? []
  if (uinr === undefined || scopeId === undefined) throw noCursor()
  return { kind: 'spent', uinr: BigInt(uinr), scopeId }
}

/** Returns false for a date that no calendar has, because JavaScript takes the 31st of February for a day of March. */
function isDate(text: string): boolean {
  const ms = Date.parse(text)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === text
}

const noCursor = () => fail('bad_request', { message: 'cursor must be the next_cursor of the page before, in the same order.' })
