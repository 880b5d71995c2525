import { noCursor, pageMaxBytes } from '../../../platform/db/bounded-page.ts'
import type { Db } from '../../../platform/db/db.ts'
import { type Place, placeCursor, placeIn } from '../../../platform/db/list-cursor.ts'
import { pageOfWalk, walkOf } from '../../../platform/db/walked-page.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { type ListedWorkspaceRow, lists } from './workspace-list-queries.ts'
import type { WorkspaceRow } from './workspace-queries.ts'

/** The orders of a list of workspaces. Each begins with the active ones. */
export const workspaceSorts = ['created', 'name'] as const
export type WorkspaceSort = (typeof workspaceSorts)[number]

/** The workspaces that a request asks for. A field that is left out chooses all. */
export interface WorkspaceFilter {
  /** A part of the name, in upper or lower case, or an id. */
  readonly text?: string | undefined
  readonly state?: 'active' | 'archived' | undefined
  readonly sort?: WorkspaceSort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

const start: Place = { isActive: true, value: '', id: 0 }

/**
 * Returns a page of the workspaces that a filter chooses, and the cursor of the next page. A page ends before its teams have more than `pageMaxBytes`.
 * Throws `bad_request` for an invalid cursor.
 */
export async function pageOfWorkspaces(
  db: Db,
  orgId: number,
  { text, state, sort = 'created', limit, cursor }: WorkspaceFilter,
): Promise<{ workspaces: readonly WorkspaceRow[]; nextCursor: string | null }> {
  const after = cursor === undefined ? start : sort === 'name' ? placeIn(sort, cursor, 'name') : placeOf(cursor)
  const scanMax = walkOf(limit, text !== undefined)
  const archived = state === undefined ? [false, true] : [state === 'archived', state === 'archived']
  const position = [String(!after.isActive), after.value, String(after.id)]
  const rows = await db.many(lists[sort], orgId, text ?? null, archived, position, scanMax, limit + 1, pageMaxBytes)
  const { rows: workspaces, end } = pageOfWalk(rows, limit, scanMax)
  return { workspaces, nextCursor: end === null ? null : cursorOf(sort, end) }
}

/** The cursors of `created` are those of versions that had no other order. */
function cursorOf(sort: WorkspaceSort, { isArchived, id, sortName }: ListedWorkspaceRow): string {
  return sort === 'name' ? placeCursor(sort, { isActive: !isArchived, value: sortName, id }) : `${isArchived ? 'archived' : 'active'}-${id}`
}

function placeOf(cursor: string): Place {
  const [, state, digits = ''] = /^(active|archived)-(\d+)$/.exec(cursor) ?? []
  const id = rowId(digits)
  if (state === undefined || id === null) throw noCursor()
  return { isActive: state === 'active', value: '', id }
}
