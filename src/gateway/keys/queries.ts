import { statement } from '../../platform/db.ts'
import type { Capability, KeyScope, Role } from '../../platform/principal.ts'

export interface KeyRow {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
  /** Role of the user's active membership; null without one. */
  readonly role: Role | null
  readonly workspaceId: number | null
  readonly name: string
  readonly scope: KeyScope
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
  readonly enabled: boolean
  readonly disabledReason: 'manual' | 'inactivity' | null
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  readonly capabilities: readonly Capability[] | null
  readonly allowedModels: readonly string[] | null
  readonly allowedProviders: readonly string[] | null
  readonly maxCostUinr: bigint | null
  readonly maxOutputTokens: number | null
  readonly maxConcurrency: number | null
}

export const findIdByHash = statement<[hash: Buffer], { id: number }>('keys.find_id_by_hash', `select id from api_keys where hash = $1::bytea`)

/** Not limited to one org: the id comes from the hash of a presented key or from a signed token. */
export const findForAuth = statement<[id: number], KeyRow>(
  'keys.find_for_auth',
  `select k.id, k.org_id as "orgId", k.user_id as "userId", m.role, k.workspace_id as "workspaceId", k.name, k.scope,
     k.rpm_limit as "rpmLimit", k.daily_limit as "dailyLimit", k.enabled, k.disabled_reason as "disabledReason",
     k.expires_at as "expiresAt", k.revoked_at as "revokedAt", m.capabilities, k.allowed_models as "allowedModels",
     k.allowed_providers as "allowedProviders", k.max_cost_uinr as "maxCostUinr", k.max_output_tokens as "maxOutputTokens",
     k.max_concurrency as "maxConcurrency"
   from api_keys k
   left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'
   where k.id = $1::int`,
)

/** A key that has expired gives its name up: the unique index knows no clock. */
export const retireExpiredName = statement<[orgId: number, name: string, now: Date]>(
  'keys.retire_expired_name',
  `update api_keys set revoked_at = expires_at
   where org_id = $1::int and name = $2::text and revoked_at is null and expires_at <= $3::timestamptz`,
)

export const insertKey = statement<
  [
    orgId: number,
    userId: number | null,
    workspaceId: number | null,
    name: string,
    hash: Buffer,
    prefix: string,
    scope: string,
    rpmLimit: number | null,
    dailyLimit: number | null,
    expiresAt: Date | null,
    createdAt: Date,
  ],
  { id: number; tier: string }
>(
  'keys.insert',
  `insert into api_keys (org_id, user_id, workspace_id, name, hash, prefix, scope, rpm_limit, daily_limit, expires_at, created_at)
   values ($1::int, $2::int, $3::int, $4::text, $5::bytea, $6::text, $7::text, $8::int, $9::int, $10::timestamptz, $11::timestamptz)
   returning id, tier`,
)

export const revokeKey = statement<[orgId: number, keyId: number, now: Date], { id: number }>(
  'keys.revoke',
  `update api_keys set revoked_at = $3::timestamptz where org_id = $1::int and id = $2::int and revoked_at is null returning id`,
)

export const keyExists = statement<[orgId: number, keyId: number], { id: number }>(
  'keys.exists',
  `select id from api_keys where org_id = $1::int and id = $2::int`,
)

/** Enabling starts the idle clock anew, so that a key is not disabled again the next night. */
export const setKeyEnabled = statement<[orgId: number, keyId: number, enabled: boolean, reason: string | null, now: Date], { id: number }>(
  'keys.set_enabled',
  `update api_keys set enabled = $3::boolean, disabled_reason = $4::text,
     last_used_at = case when $3::boolean and not enabled then $5::timestamptz else last_used_at end,
     inactivity_notice_at = case when $3::boolean then null else inactivity_notice_at end
   where org_id = $1::int and id = $2::int and revoked_at is null returning id`,
)

export const setKeyLimits = statement<[orgId: number, keyId: number, rpmLimit: number | null, dailyLimit: number | null], { id: number }>(
  'keys.set_limits',
  `update api_keys set rpm_limit = $3::int, daily_limit = $4::int
   where org_id = $1::int and id = $2::int and revoked_at is null returning id`,
)

/** Rows are locked in the order of their ids, so that processes that flush at once do not wait for each other in a circle. */
export const touchKeys = statement<[keyIds: readonly number[], usedAt: readonly Date[]]>(
  'keys.touch',
  `with used as materialized (select * from unnest($1::int[], $2::timestamptz[]) as u(id, at)),
     locked as materialized (select k.id from api_keys k where k.id = any($1::int[]) order by k.id for no key update)
   update api_keys k set last_used_at = greatest(k.last_used_at, used.at)
   from used join locked on locked.id = used.id
   where k.id = used.id`,
)
