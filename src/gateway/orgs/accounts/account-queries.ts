import { statement } from '../../../platform/db/db.ts'
import type { Role } from '../../../platform/security/principal.ts'

export interface PersonRow {
  readonly id: number
  readonly email: string
  readonly name: string | null
  readonly avatarUrl: string | null
  /** True when the person has already sent POST /me/attribution. */
  readonly isAttributed: boolean
}

export interface OwnOrgRow {
  readonly id: number
  readonly name: string
  readonly kind: 'personal' | 'team'
  readonly role: Role
  readonly memberCount: number
}

export const findPerson = statement<[userId: number], PersonRow>(
  'orgs.find_person',
  `select u.id, u.email, u.name, u.avatar_url as "avatarUrl", exists (select 1 from attributions a where a.user_id = u.id) as "isAttributed"
   from users u where u.id = $1::int`,
)

export const updatePerson = statement<[userId: number, name: string | null, dropsAvatar: boolean]>(
  'orgs.update_person',
  `update users set name = coalesce($2::text, name), avatar_url = case when $3::boolean then null else avatar_url end where id = $1::int`,
)

export const lockFounder = statement<[userId: number], { email: string }>('orgs.lock_founder', `select email from users where id = $1::int for no key update`)

export const countTeamsMade = statement<[userId: number], { teams: number }>(
  'orgs.count_teams_made',
  `select count(*)::int as teams from orgs where created_by = $1::int and kind = 'team'`,
)

export const insertTeam = statement<[name: string, domain: string | null, createdBy: number, createdAt: Date], { id: number }>(
  'orgs.insert_team',
  `insert into orgs (name, kind, domain, created_by, created_at) values ($1::text, 'team', $2::text, $3::int, $4::timestamptz) returning id`,
)

/** Returns the organisations of which the person is an active member. */
export const listOwnOrgs = statement<[userId: number, limit: number], OwnOrgRow>(
  'orgs.list_own_orgs',
  `select o.id, o.name, o.kind, m.role,
     (select count(*) from org_members c where c.org_id = o.id and c.status = 'active')::int as "memberCount"
   from org_members m join orgs o on o.id = m.org_id
   where m.user_id = $1::int and m.status = 'active' order by o.id limit $2::int`,
)

/** Returns one organisation as a member sees it. */
export const findOwnOrg = statement<[orgId: number, userId: number], OwnOrgRow>(
  'orgs.find_own_org',
  `select o.id, o.name, o.kind, m.role,
     (select count(*) from org_members c where c.org_id = $1::int and c.status = 'active')::int as "memberCount"
   from org_members m join orgs o on o.id = m.org_id
   where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active'`,
)

export const insertAttribution = statement<[userId: number, source: string, detail: string | null, now: Date]>(
  'orgs.insert_attribution',
  `insert into attributions (user_id, source, detail, created_at) values ($1::int, $2::text, $3::text, $4::timestamptz) on conflict (user_id) do nothing`,
)
