import { idOfCursor } from '../../../platform/db/bounded-page.ts'
import type { Db } from '../../../platform/db/db.ts'
import { placeCursor, placeIn } from '../../../platform/db/list-cursor.ts'
import type { Role } from '../../../platform/security/principal.ts'
import { type MemberSort, memberLists, type PagedMember } from './member-list-queries.ts'
import type { ListedMemberRow } from './member-queries.ts'

/** The members that a request asks for. A field that is left out chooses all. */
export interface MemberFilter {
  /** A part of the name or of the address, in upper or lower case, or a user id. */
  readonly text?: string | undefined
  readonly role?: Role | undefined
  readonly sort?: MemberSort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** Returns a page of the members that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
export async function pageOfMembers(
  db: Db,
  orgId: number,
  { text, role, sort = 'created', limit, cursor }: MemberFilter,
): Promise<{ members: readonly ListedMemberRow[]; nextCursor: string | null }> {
  const after = cursor === undefined ? { value: '', id: 0 } : sort === 'created' ? { value: '', id: idOfCursor(cursor) ?? 0 } : placeIn(sort, cursor, 'name')
  const rows = await db.many(memberLists[sort], orgId, text ?? null, role ?? null, after.value, after.id, limit + 1)
  const members = rows.slice(0, limit)
  const last = members.at(-1)
  return { members, nextCursor: rows.length > limit && last !== undefined ? cursorOf(sort, last) : null }
}

/** The cursors of `created` are those of versions that had no other order. */
const cursorOf = (sort: MemberSort, { userId, sortValue }: PagedMember): string =>
  sort === 'created' ? String(userId) : placeCursor(sort, { isActive: true, value: sortValue, id: userId })
