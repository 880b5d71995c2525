import { type Db, statement } from '../../platform/db/db.ts'

/** The organisation and the person of a key. `userId` is null for a key without a user. */
export interface KeyHolder {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
}

const findHolders = statement<[ids: readonly number[]], KeyHolder>(
  'keys.find_holders',
  `select id, org_id as "orgId", user_id as "userId" from api_keys where id = any($1::int[])`,
)

/** Returns the holders of keys in any organisation. Keys that do not exist are left out. The caller bounds the number of ids. */
export const holdersOfKeys = (db: Db, ids: readonly number[]): Promise<KeyHolder[]> => db.many(findHolders, ids)
