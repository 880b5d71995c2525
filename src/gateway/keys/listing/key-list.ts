import { idOfCursor, pageMaxBytes } from '../../../platform/db/bounded-page.ts'
import type { Db } from '../../../platform/db/db.ts'
import { idMax, noPlace, type Place, type PlaceValue, placeCursor, placeIn } from '../../../platform/db/list-cursor.ts'
import { pageOfWalk, walkOf } from '../../../platform/db/walked-page.ts'
import { type KeyState, type ListedKey, type ListedKeyRow, lists } from './list-queries.ts'

/** The orders of a list of keys. */
export const keySorts = ['created', 'name', 'last_used'] as const
export type KeySort = (typeof keySorts)[number]

/** The keys that a request asks for. A field that is left out chooses all that are not revoked. */
export interface KeyFilter {
  /** A part of the name, in upper or lower case, an id, or the start of the key. */
  readonly text?: string | undefined
  readonly state?: KeyState | undefined
  readonly ownerUser?: number | undefined
  readonly sort?: KeySort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

const values: Readonly<Record<KeySort, PlaceValue>> = { created: 'none', name: 'name', last_used: 'time' }
const starts: Readonly<Record<KeySort, Omit<Place, 'isActive'>>> = {
  created: { value: '', id: idMax },
  name: { value: '', id: 0 },
  last_used: { value: 'infinity', id: idMax },
}

/**
 * Returns a page of the keys that a filter chooses, and the cursor of the next page. Each order is a walk on an index. A page ends before its keys have
 * more than `pageMaxBytes`. Throws `bad_request` for an invalid cursor.
 */
export async function pageOfKeys(db: Db, orgId: number, filter: KeyFilter, now: Date): Promise<{ keys: readonly ListedKey[]; nextCursor: string | null }> {
  const { sort = 'created', cursor, limit, text, state, ownerUser } = filter
  const isActive = state !== 'revoked'
  const after = cursor === undefined ? starts[sort] : placeOf(sort, cursor, isActive)
  const scanMax = walkOf(limit, text !== undefined || (state !== undefined && isActive) || ownerUser !== undefined)
  const conditions = [text ?? null, state ?? null, ownerUser ?? null, now, isActive] as const
  const rows = await db.many(lists[sort], orgId, ...conditions, [after.value, String(after.id)], scanMax, limit + 1, pageMaxBytes)
  const { rows: keys, end } = pageOfWalk(rows, limit, scanMax)
  return { keys, nextCursor: end === null ? null : cursorOf(sort, end, isActive) }
}

/** The cursors of `created` are those of versions that had no other order. */
function placeOf(sort: KeySort, cursor: string, isActive: boolean): Omit<Place, 'isActive'> {
  if (sort === 'created') return { value: '', id: idOfCursor(cursor) ?? idMax }
  const place = placeIn(sort, cursor, values[sort])
  if (place.isActive !== isActive) throw noPlace()
  return place
}

function cursorOf(sort: KeySort, row: ListedKeyRow, isActive: boolean): string {
  if (sort === 'created') return String(row.id)
  const value = sort === 'name' ? row.sortName : (row.lastUsedAt?.toISOString() ?? '-infinity')
  return placeCursor(sort, { isActive, value, id: row.id })
}
