import { statement } from '../../platform/db/db.ts'

/** An open share. */
export interface ShareRow {
  readonly id: number
  readonly space: string
  readonly ownerId: number
  /** The users who were granted access, by user id. The owner is not among them. */
  readonly memberUids: readonly number[]
}

/** A share in any state. */
export interface KnownShareRow extends ShareRow {
  readonly state: 'active' | 'retired'
}

const share = `s.id, s.space, s.owner_id as "ownerId",
     array(select g.user_id from memory_share_members g where g.org_id = s.org_id and g.space = s.space order by g.user_id) as "memberUids"`

/** Returns open shares in the order of their names. With `isAll` these are all of the organisation, otherwise those that the person owns or was granted. */
export const listShares = statement<[orgId: number, userId: number | null, isAll: boolean, after: string, limit: number], ShareRow>(
  'memory.list_shares',
  `select ${share} from memory_shares s
   where s.org_id = $1::int and s.state = 'active' and s.space > $4::text
     and ($3::boolean or s.owner_id = $2::int or exists (
       select 1 from memory_share_members g where g.org_id = s.org_id and g.space = s.space and g.user_id = $2::int))
   order by s.space limit $5::int`,
)

export const findShare = statement<[orgId: number, space: string], KnownShareRow>(
  'memory.find_share',
  `select ${share}, s.state from memory_shares s where s.org_id = $1::int and s.space = $2::text`,
)

/** Returns the numbers of shares: open shares of the person, open shares of the organisation, and all shares that the organisation ever had. */
export const countShares = statement<[orgId: number, userId: number], { own: number; active: number; ever: number }>(
  'memory.count_shares',
  `select (count(*) filter (where state = 'active' and owner_id = $2::int))::int as own,
     (count(*) filter (where state = 'active'))::int as active, count(*)::int as ever
   from memory_shares where org_id = $1::int`,
)

export const insertShare = statement<[orgId: number, space: string, ownerId: number, now: Date]>(
  'memory.insert_share',
  `insert into memory_shares (org_id, space, owner_id, created_at) values ($1::int, $2::text, $3::int, $4::timestamptz)`,
)

/** Adds grants. Existing grants do not change. */
export const insertGrants = statement<[orgId: number, space: string, userIds: readonly number[], grantedBy: number, now: Date]>(
  'memory.insert_grants',
  `insert into memory_share_members (org_id, space, user_id, granted_by, granted_at)
   select $1::int, $2::text, u.id, $4::int, $5::timestamptz from unnest($3::int[]) as u(id)
   on conflict (org_id, space, user_id) do nothing`,
)

export const deleteGrant = statement<[orgId: number, space: string, userId: number]>(
  'memory.delete_grant',
  `delete from memory_share_members where org_id = $1::int and space = $2::text and user_id = $3::int`,
)

export const deleteGrants = statement<[orgId: number, space: string]>(
  'memory.delete_grants',
  `delete from memory_share_members where org_id = $1::int and space = $2::text`,
)

export const retireShare = statement<[orgId: number, space: string, now: Date]>(
  'memory.retire_share',
  `update memory_shares set state = 'retired', retired_at = $3::timestamptz where org_id = $1::int and space = $2::text and state = 'active'`,
)
