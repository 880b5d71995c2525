import { statement } from '../../../platform/db/db.ts'

export interface PersonRow {
  readonly id: number
  readonly email: string
  readonly name: string | null
}

export const findIdentity = statement<[provider: string, subject: string], { userId: number }>(
  'orgs.find_identity',
  `select user_id as "userId" from user_identities where provider = $1::text and subject = $2::text`,
)

export const insertIdentity = statement<[provider: string, subject: string, userId: number, createdAt: Date]>(
  'orgs.insert_identity',
  `insert into user_identities (provider, subject, user_id, created_at) values ($1::text, $2::text, $3::int, $4::timestamptz)
   on conflict (provider, subject) do nothing`,
)

export const insertPerson = statement<[email: string, createdAt: Date]>(
  'orgs.insert_person',
  `insert into users (email, created_at) values ($1::text, $2::timestamptz) on conflict ((lower(email))) do nothing`,
)

/** Makes a user for an address that has an open invitation. */
export const insertInvitedPerson = statement<[email: string, createdAt: Date]>(
  'orgs.insert_invited_person',
  `insert into users (email, created_at)
   select i.email, $2::timestamptz from invitations i where lower(i.email) = lower($1::text) and i.status = 'pending' limit 1
   on conflict ((lower(email))) do nothing`,
)

export const findPersonByEmail = statement<[email: string], PersonRow>(
  'orgs.find_person_by_email',
  `select id, email, name from users where lower(email) = lower($1::text)`,
)

/** Locks the person's row, so that two concurrent sign-ins of one person cannot both make an organisation. */
export const lockPerson = statement<[userId: number], PersonRow>('orgs.lock_person', `select id, email, name from users where id = $1::int for update`)

/** Fills only the fields that are still null. */
export const fillProfile = statement<[userId: number, name: string | null, avatarUrl: string | null]>(
  'orgs.fill_profile',
  `update users set name = coalesce(name, $2::text), avatar_url = coalesce(avatar_url, $3::text) where id = $1::int`,
)

export const hasMembership = statement<[userId: number], { orgId: number }>(
  'orgs.has_membership',
  `select m.org_id as "orgId" from org_members m where m.user_id = $1::int and m.status = 'active' limit 1`,
)

export const insertPersonalOrg = statement<[name: string, userId: number, createdAt: Date]>(
  'orgs.insert_personal_org',
  `insert into orgs (name, kind, created_by, created_at) values ($1::text, 'personal', $2::int, $3::timestamptz)
   on conflict (created_by) where kind = 'personal' do nothing`,
)

export const findPersonalOrg = statement<[userId: number], { id: number }>(
  'orgs.find_personal_org',
  `select id from orgs where created_by = $1::int and kind = 'personal'`,
)

/** Makes the person the owner of their personal organisation. This also restores a membership that was removed or changed. */
export const ownPersonalOrg = statement<[orgId: number, userId: number, createdAt: Date]>(
  'orgs.own_personal_org',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, 'owner', $3::timestamptz)
   on conflict (org_id, user_id) do update set status = 'active', role = 'owner'`,
)
