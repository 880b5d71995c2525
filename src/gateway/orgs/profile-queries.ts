import { statement } from '../../platform/db.ts'

export interface ProfileRow {
  readonly model: string | null
  readonly connectors: readonly string[]
  readonly rules: string | null
}

export const findProfile = statement<[orgId: number, userId: number], ProfileRow>(
  'profiles.find',
  `select model, connectors, rules from coding_profiles where org_id = $1::int and user_id = $2::int`,
)

export const saveProfile = statement<
  [orgId: number, userId: number, model: string | null, connectors: readonly string[], rules: string | null, now: Date],
  ProfileRow
>(
  'profiles.save',
  `insert into coding_profiles (org_id, user_id, model, connectors, rules, updated_at)
   values ($1::int, $2::int, $3::text, $4::text[], $5::text, $6::timestamptz)
   on conflict (org_id, user_id) do update set
     model = excluded.model, connectors = excluded.connectors, rules = excluded.rules, updated_at = excluded.updated_at
   returning model, connectors, rules`,
)
