/** Cursors of lists that have several orders. A cursor belongs to one order and says after which row the next page begins. Decision 0690 says why. */
import { fail } from '../errors.ts'
import { rowId } from '../values/row-id.ts'

/** A place in an order: the rest of the list comes after it. */
export interface Place {
  /** False for a row that the list shows after all active ones, such as a revoked or an archived one. */
  readonly isActive: boolean
  /** The value of the order as text: a name as the database compares it, or a time. Empty when the order has only the id. */
  readonly value: string
  readonly id: number
}

/** What the value of an order is. */
export type PlaceValue = 'none' | 'name' | 'time'

/** Maximum length of a cursor. A name has at most 100 characters, and a character at most 4 bytes. */
export const cursorCharsMax = 1_000
/** Above every id. */
export const idMax = 2 ** 31 - 1

const shapes: Readonly<Record<PlaceValue, RegExp>> = {
  none: /^$/,
  name: /^[^\p{Cc}]{0,400}$/u,
  time: /^(-infinity|[12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/,
}

/** Returns the cursor of a place. `sort` is the name of the order. An empty one makes the short form, which holds no value. */
export function placeCursor(sort: string, { isActive, value, id }: Place): string {
  const place = `${isActive ? 'a' : 'r'}${id}`
  return sort === '' ? place : `${sort}.${place}.${Buffer.from(value).toString('base64url')}`
}

/** Returns the place of a cursor. Throws `bad_request` for a text that is not a cursor of this order. */
export function placeIn(sort: string, cursor: string, kind: PlaceValue): Place {
  const [place = '', encoded = ''] = sort === '' ? [cursor] : cursor.startsWith(`${sort}.`) ? cursor.slice(sort.length + 1).split('.') : []
  const id = rowId(place.slice(1))
  const value = Buffer.from(encoded, 'base64url').toString()
  const isTime = kind !== 'time' || value === '-infinity' || isDate(value)
  if (cursor.length > cursorCharsMax || id === null || !/^[ar]/.test(place) || !shapes[kind].test(value) || !isTime) throw noPlace()
  return { isActive: place.startsWith('a'), value, id }
}

/** Returns false for a date that no calendar has, because JavaScript takes the 31st of February for a day of March. */
function isDate(text: string): boolean {
  const ms = Date.parse(text)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === text
}

/** The error for a text that is not a cursor of the order. */
export const noPlace = () => fail('bad_request', { message: 'cursor must be the next_cursor of the page before, in the same order.' })
