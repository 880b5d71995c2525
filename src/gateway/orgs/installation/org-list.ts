import { pageMaxBytes } from '../../../platform/db/bounded-page.ts'
import type { Db } from '../../../platform/db/db.ts'
import { idMax, type Place, placeCursor, placeIn } from '../../../platform/db/list-cursor.ts'
import { pageOfWalk, walkOf } from '../../../platform/db/walked-page.ts'
import { type ListedOrgRow, lists } from './org-list-queries.ts'

export type ListedOrg = ListedOrgRow

/** The orders of the list of all organisations. */
export const orgSorts = ['newest', 'oldest', 'name'] as const
export type OrgSort = (typeof orgSorts)[number]

/** The organisations that a request asks for. A field that is left out chooses all. */
export interface OrgFilter {
  /** A part of the name, in upper or lower case, or an id. */
  readonly text?: string | undefined
  readonly sort?: OrgSort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/**
 * Returns a page of the organisations of the installation, and the cursor of the next page. It is for the operator only. Throws `bad_request` for an
 * invalid cursor.
 */
export async function pageOfOrgs(
  db: Db,
  { text, sort = 'newest', limit, cursor }: OrgFilter,
): Promise<{ orgs: readonly ListedOrg[]; nextCursor: string | null }> {
  const after = cursor === undefined ? startOf(sort) : placeIn(sort, cursor, sort === 'name' ? 'name' : 'none')
  const scanMax = walkOf(limit, text !== undefined)
  const rows = await db.many(lists[sort], text ?? null, [after.value, String(after.id)], scanMax, limit + 1, pageMaxBytes)
  const { rows: orgs, end } = pageOfWalk(rows, limit, scanMax)
  const value = sort === 'name' ? (end?.sortName ?? '') : ''
  return { orgs, nextCursor: end === null ? null : placeCursor(sort, { isActive: true, value, id: end.id }) }
}

const startOf = (sort: OrgSort): Place => ({ isActive: true, value: '', id: sort === 'newest' ? idMax : 0 })
