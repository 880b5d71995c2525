import { type Db, statement } from '../../../src/platform/db/db.ts'

interface Person {
  readonly id: number
  readonly email: string
  readonly name: string | null
  readonly avatarUrl: string | null
}

interface UserRow {
  readonly email: string
  readonly name: string | null
  readonly orgName: string | null
  readonly kind: string | null
  readonly domain: string | null
  readonly role: string | null
  readonly status: string | null
}

const findPerson = statement<[email: string], Person>(
  'test.find_person',
  `select id, email, name, avatar_url as "avatarUrl" from users where lower(email) = lower($1::text)`,
)
const findUsers = statement<[email: string], UserRow>(
  'test.find_users',
  `select u.email, u.name, o.name as "orgName", o.kind, o.domain, m.role, m.status
   from users u left join org_members m on m.user_id = u.id left join orgs o on o.id = m.org_id
   where lower(u.email) = lower($1::text) order by m.org_id`,
)
export const addMembership = statement<[orgId: number, userId: number]>(
  'test.add_membership',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, 'member', now())`,
)
export const endMembership = statement<[orgId: number, userId: number]>(
  'test.end_membership',
  `update org_members set status = 'removed' where org_id = $1::int and user_id = $2::int`,
)

/** Returns the user with that address, or null. */
export const person = (db: Db, email: string): Promise<Person | null> => db.maybe(findPerson, email)

/** Returns one row for each membership of the user with that address. */
export const usersOf = (db: Db, email: string): Promise<UserRow[]> => db.many(findUsers, email)
