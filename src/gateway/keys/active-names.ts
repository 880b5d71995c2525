/** Names of API keys that can still be used. Other domains that store key ids use them, for example to show a name or to drop an id. */
import { type Db, statement } from '../../platform/db/db.ts'

/** Returns, by id, the names of those keys that are neither revoked nor expired. When a key has a user, the user must also be an active member. */
export async function namesOfActiveKeys(db: Db, orgId: number, keyIds: readonly number[], nowMs: number): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(activeKeyNames, orgId, keyIds, new Date(nowMs))).map(row => [row.id, row.name]))
}

/** Disabled keys are included, because an owner or admin can enable them again. */
const activeKeyNames = statement<[orgId: number, keyIds: readonly number[], now: Date], { id: number; name: string }>(
  'keys.active_names',
  `select k.id, k.name from unnest($2::int[]) w(id) join api_keys k on k.org_id = $1::int and k.id = w.id
   left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'
   where k.revoked_at is null and (k.expires_at is null or k.expires_at > $3::timestamptz)
     and (k.user_id is null or m.user_id is not null)`,
)

/** Returns those of these keys that belong to a user. */
export async function keysOfUser(db: Db, orgId: number, keyIds: readonly number[], userId: number): Promise<readonly number[]> {
  return (await db.many(ownedKeys, orgId, keyIds, userId)).map(row => row.id)
}

const ownedKeys = statement<[orgId: number, keyIds: readonly number[], userId: number], { id: number }>(
  'keys.of_user',
  `select k.id from unnest($2::int[]) w(id) join api_keys k on k.org_id = $1::int and k.id = w.id where k.user_id = $3::int`,
)

/** The counts end here, so that a workspace with many keys costs no more. */
const countedKeysMax = 1_000

/** Returns, by workspace id, how many keys that are not revoked belong to each of these workspaces, at most `countedKeysMax`. A workspace without keys is left out. */
export async function countKeysOfWorkspaces(db: Db, orgId: number, workspaceIds: readonly number[]): Promise<ReadonlyMap<number, number>> {
  return new Map((await db.many(keysOfWorkspaces, orgId, workspaceIds, countedKeysMax)).map(row => [row.id, row.keys]))
}

const keysOfWorkspaces = statement<[orgId: number, workspaceIds: readonly number[], max: number], { id: number; keys: number }>(
  'keys.of_workspaces',
  `select w.id, c.keys from unnest($2::int[]) w(id) cross join lateral (
     select count(*)::int as keys from (
       select 1 from api_keys k where k.org_id = $1::int and k.workspace_id = w.id and k.revoked_at is null limit $3::int) found) c
   where c.keys > 0`,
)
