import { statement } from '../../platform/db/db.ts'
import type { Capability, Role } from '../../platform/security/principal.ts'

export interface UserRow {
  readonly id: number
  readonly email: string
  readonly name: string | null
}

export interface MemberRow {
  readonly userId: number
  readonly email: string
  readonly name: string | null
  readonly role: Role
  readonly capabilities: readonly Capability[]
}

export interface OrgRow {
  readonly id: number
  readonly name: string
  readonly kind: 'personal' | 'team'
  /** Mail domain of the founder's company. It is only shown. Null for public mail. */
  readonly domain: string | null
  readonly retentionDays: number
  /** Days without use after which a key is disabled. Null means never. */
  readonly keyInactivityDays: number | null
  /** The currency beside rupees in reports. Null means rupees only. */
  readonly displayCurrency: string | null
}

export const findUserByEmail = statement<[email: string], UserRow>(
  'orgs.find_user_by_email',
  `select id, email, name from users where lower(email) = lower($1::text)`,
)

export const insertUser = statement<[email: string, createdAt: Date]>(
  'orgs.insert_user',
  `insert into users (email, created_at) values ($1::text, $2::timestamptz) on conflict ((lower(email))) do nothing`,
)

export const insertOrg = statement<[name: string, kind: string, domain: string | null, createdAt: Date], { id: number }>(
  'orgs.insert_org',
  `insert into orgs (name, kind, domain, created_at) values ($1::text, $2::text, $3::text, $4::timestamptz) returning id`,
)

export const insertMember = statement<[orgId: number, userId: number, role: string, createdAt: Date]>(
  'orgs.insert_member',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, $3::text, $4::timestamptz)`,
)

export const findOrg = statement<[orgId: number], OrgRow>(
  'orgs.find_org',
  `select id, name, kind, domain, retention_days as "retentionDays", key_inactivity_days as "keyInactivityDays",
     display_currency as "displayCurrency" from orgs where id = $1::int`,
)

export const anyOrg = statement<[], { id: number }>('orgs.any', `select id from orgs limit 1`)

export const findFirstOwner = statement<[], { email: string }>(
  'orgs.find_first_owner',
  `select u.email from org_members m join users u on u.id = m.user_id
   where m.org_id = (select min(id) from orgs) and m.role = 'owner' and m.status = 'active' order by m.user_id limit 1`,
)

export const findMemberRole = statement<[orgId: number, userId: number], { role: Role }>(
  'orgs.find_member_role',
  `select role from org_members where org_id = $1::int and user_id = $2::int and status = 'active'`,
)

export const listMembers = statement<[orgId: number, limit: number], MemberRow>(
  'orgs.list_members',
  `select m.user_id as "userId", u.email, u.name, m.role, m.capabilities
   from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.status = 'active' order by m.user_id limit $2::int`,
)

export const renameOrg = statement<[orgId: number, name: string]>('orgs.rename', `update orgs set name = $2::text where id = $1::int`)

export const setRetentionDays = statement<[orgId: number, days: number]>(
  'orgs.set_retention_days',
  `update orgs set retention_days = $2::int where id = $1::int`,
)

export const setKeyInactivityDays = statement<[orgId: number, days: number | null]>(
  'orgs.set_key_inactivity_days',
  `update orgs set key_inactivity_days = $2::int where id = $1::int`,
)

export const setDisplayCurrency = statement<[orgId: number, currency: string | null]>(
  'orgs.set_display_currency',
  `update orgs set display_currency = $2::text where id = $1::int`,
)
