import { type Statement, statement } from '../../../platform/db/db.ts'
import type { Role } from '../../../platform/security/principal.ts'
import type { ListedMemberRow } from './member-queries.ts'

/** The orders of a list of members. */
export const memberSorts = ['created', 'name', 'email'] as const
export type MemberSort = (typeof memberSorts)[number]

/** A member in a list, with its place in the order. */
export interface PagedMember extends ListedMemberRow {
  /** The value of the order as the database compares it. */
  readonly sortValue: string
}

type ListParams = [orgId: number, text: string | null, role: Role | null, afterValue: string, afterUserId: number, limit: number]

/** The value of each order. Members without a name are in the place of their address. */
const values: Readonly<Record<MemberSort, string>> = { created: `''`, name: 'lower(coalesce(u.name, u.email))', email: 'lower(u.email)' }
const listOf = (sort: MemberSort): Statement<ListParams, PagedMember> => {
  const value = `(${values[sort]} collate "C")`
  const after = sort === 'created' ? '$4::text is not null and m.user_id > $5::int' : `(${value}, m.user_id) > ($4::text, $5::int)`
  return statement<ListParams, PagedMember>(
    `orgs.list_members_by_${sort}`,
    `select m.user_id as "userId", u.email, u.name, m.role, m.capabilities, ${value} as "sortValue"
     from org_members m join users u on u.id = m.user_id
     where m.org_id = $1::int and m.status = 'active' and ($3::text is null or m.role = $3::text)
       and ($2::text is null or strpos(lower(coalesce(u.name, '')), lower($2::text)) > 0 or strpos(lower(u.email), lower($2::text)) > 0 or u.id::text = $2::text)
       and ${after}
     order by ${sort === 'created' ? '' : `${value}, `}m.user_id limit $6::int`,
  )
}
/** MEMBERS_MAX bounds the rows that an order or a search reads, so that names and addresses need no index. */
export const memberLists: Readonly<Record<MemberSort, Statement<ListParams, PagedMember>>> = {
  created: listOf('created'),
  name: listOf('name'),
  email: listOf('email'),
}
