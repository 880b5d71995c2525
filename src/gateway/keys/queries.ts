import { statement } from '../../platform/db/db.ts'
import type { Capability, KeyScope, Role } from '../../platform/security/principal.ts'
import type { StoredRunCaps } from '../../platform/security/run-caps.ts'
import { founderSql } from '../orgs/founders.ts'
import type { KeyTier } from './key-rules.ts'

export interface KeyRow {
  readonly id: number
  readonly orgId: number
  /** A text for the founder of the organisation. */
  readonly founder: string
  readonly userId: number | null
  /** Role of the user's active membership. Null when there is no active membership. */
  readonly role: Role | null
  readonly workspaceId: number | null
  readonly name: string
  readonly scope: KeyScope
  readonly tier: KeyTier
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
  readonly tpmLimit: number | null
  readonly allowedTools: readonly string[] | null
  readonly runCaps: StoredRunCaps | null
  readonly hash: Buffer
  readonly previousHash: Buffer | null
  readonly previousUntil: Date | null
}

/** Finds a key by its present secret or by the secret before the last rotation. The record says whether the old secret still works. */
export const findIdByHash = statement<[hash: Buffer], { id: number }>(
  'keys.find_id_by_hash',
  `select id from api_keys where hash = $1::bytea or previous_hash = $1::bytea`,
)

/** Finds a key in any organisation, because the id comes from the hash of a presented key or from a signed token. */
export const findForAuth = statement<[id: number], KeyRow>(
  'keys.find_for_auth',
  `select k.id, k.org_id as "orgId", ${founderSql('k.org_id')} as "founder", k.user_id as "userId", m.role, k.workspace_id as "workspaceId", k.name, k.scope, k.tier,
     k.rpm_limit as "rpmLimit", k.daily_limit as "dailyLimit", k.enabled, k.disabled_reason as "disabledReason",
     k.expires_at as "expiresAt", k.revoked_at as "revokedAt", m.capabilities, k.allowed_models as "allowedModels",
     k.allowed_providers as "allowedProviders", k.max_cost_uinr as "maxCostUinr", k.max_output_tokens as "maxOutputTokens",
     k.max_concurrency as "maxConcurrency", k.tpm_limit as "tpmLimit", k.allowed_tools as "allowedTools", k.run_caps as "runCaps", k.hash, k.previous_hash as "previousHash", k.previous_until as "previousUntil"
   from api_keys k
   left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'
   where k.id = $1::int`,
)

/** Returns whether a key has one of these names. Revoked keys and the key `exceptId` do not count. */
export const isNameTaken = statement<[orgId: number, names: readonly string[], exceptId: number], { taken: boolean }>(
  'keys.is_name_taken',
  `select exists (select 1 from api_keys where org_id = $1::int and name = any($2::text[]) and revoked_at is null and id <> $3::int) as "taken"`,
)

/** Revokes an expired key with this name, so that a new key can have the name. The unique index cannot compare with the present time. */
export const retireExpiredName = statement<[orgId: number, name: string, now: Date]>(
  'keys.retire_expired_name',
  `update api_keys set revoked_at = expires_at
   where org_id = $1::int and name = $2::text and revoked_at is null and expires_at <= $3::timestamptz`,
)

/**
 * Returns when the organisation first received credit, and locks the organisation. The lock prevents a trial key that is made while credit
 * arrives, and two keys with the same generated name.
 */
export const lockOrg = statement<[orgId: number], { creditedAt: Date | null }>(
  'keys.lock_org',
  `select credited_at as "creditedAt" from orgs where id = $1::int for no key update`,
)

/**
 * Returns the highest number that follows this start in a key name of the organisation, revoked keys included. 0 when there is no such
 * name.
 */
export const highestNumber = statement<[orgId: number, start: string], { highest: number }>(
  'keys.highest_number',
  `select coalesce(max(substr(name, length($2::text) + 1)::int), 0) as "highest" from api_keys
   where org_id = $1::int and starts_with(name, $2::text) and substr(name, length($2::text) + 1) ~ '^[0-9]{1,8}$'`,
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
    tier: string,
    rpmLimit: number | null,
    dailyLimit: number | null,
    lifecyclePin: string | null,
    allowedModels: readonly string[] | null,
    allowedProviders: readonly string[] | null,
    maxCostUinr: bigint | null,
    maxOutputTokens: number | null,
    maxConcurrency: number | null,
    expiresAt: Date | null,
    createdAt: Date,
    allowedTools: readonly string[] | null,
    runCaps: string | null,
    tpmLimit: number | null,
  ],
  { id: number }
>(
  'keys.insert',
  `insert into api_keys (org_id, user_id, workspace_id, name, hash, prefix, scope, tier, rpm_limit, daily_limit, lifecycle_pin,
     allowed_models, allowed_providers, max_cost_uinr, max_output_tokens, max_concurrency, expires_at, created_at, allowed_tools, run_caps, tpm_limit)
   values ($1::int, $2::int, $3::int, $4::text, $5::bytea, $6::text, $7::text, $8::text, $9::int, $10::int, $11::text,
     $12::text[], $13::text[], $14::bigint, $15::int, $16::int, $17::timestamptz, $18::timestamptz, $19::text[], $20::jsonb, $21::int)
   returning id`,
)

/** The values before a change. The row is locked until the change is written. */
export interface ChangeableKey {
  readonly userId: number | null
  readonly prefix: string
  readonly name: string
  readonly scope: KeyScope
  readonly tier: KeyTier
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
  readonly enabled: boolean
  readonly disabledReason: 'manual' | 'inactivity' | null
  readonly lifecyclePin: 'keep' | null
  readonly allowedModels: readonly string[] | null
  readonly allowedProviders: readonly string[] | null
  readonly maxCostUinr: bigint | null
  readonly maxOutputTokens: number | null
  readonly maxConcurrency: number | null
  readonly tpmLimit: number | null
  readonly allowedTools: readonly string[] | null
  readonly runCaps: StoredRunCaps | null
  readonly expiresAt: Date | null
}

export const lockKey = statement<[orgId: number, keyId: number], ChangeableKey>(
  'keys.lock',
  `select user_id as "userId", prefix, name, scope, tier, rpm_limit as "rpmLimit", daily_limit as "dailyLimit", enabled,
     disabled_reason as "disabledReason", lifecycle_pin as "lifecyclePin", allowed_models as "allowedModels",
     allowed_providers as "allowedProviders", max_cost_uinr as "maxCostUinr", max_output_tokens as "maxOutputTokens",
     max_concurrency as "maxConcurrency", tpm_limit as "tpmLimit", allowed_tools as "allowedTools", run_caps as "runCaps", expires_at as "expiresAt"
   from api_keys where org_id = $1::int and id = $2::int and revoked_at is null for no key update`,
)

/** Updates the key. Enabling a disabled key restarts its idle time, so that the next sweep does not disable it again. */
export const updateKey = statement<
  [
    orgId: number,
    keyId: number,
    name: string,
    rpmLimit: number | null,
    dailyLimit: number | null,
    enabled: boolean,
    disabledReason: string | null,
    lifecyclePin: string | null,
    allowedModels: readonly string[] | null,
    allowedProviders: readonly string[] | null,
    maxCostUinr: bigint | null,
    maxOutputTokens: number | null,
    maxConcurrency: number | null,
    now: Date,
    allowedTools: readonly string[] | null,
    runCaps: string | null,
    tpmLimit: number | null,
  ]
>(
  'keys.update',
  `update api_keys set name = $3::text, rpm_limit = $4::int, daily_limit = $5::int, enabled = $6::boolean, disabled_reason = $7::text,
     lifecycle_pin = $8::text, allowed_models = $9::text[], allowed_providers = $10::text[], max_cost_uinr = $11::bigint,
     max_output_tokens = $12::int, max_concurrency = $13::int, allowed_tools = $15::text[], run_caps = $16::jsonb, tpm_limit = $17::int,
     idle_from = case when $6::boolean and not enabled then $14::timestamptz else idle_from end,
     inactivity_notice_at = case when $6::boolean and not enabled then null else inactivity_notice_at end
   where org_id = $1::int and id = $2::int`,
)

/** Stores a new secret. The present secret becomes the previous one. The secret before it is dropped. */
export const rotateKey = statement<[orgId: number, keyId: number, hash: Buffer, prefix: string, previousUntil: Date, now: Date]>(
  'keys.rotate',
  `update api_keys set previous_hash = hash, previous_until = $5::timestamptz, hash = $3::bytea, prefix = $4::text, rotated_at = $6::timestamptz
   where org_id = $1::int and id = $2::int`,
)

export const revokeKey = statement<[orgId: number, keyId: number, now: Date], { prefix: string; scope: KeyScope; tier: KeyTier }>(
  'keys.revoke',
  `update api_keys set revoked_at = $3::timestamptz where org_id = $1::int and id = $2::int and revoked_at is null returning prefix, scope, tier`,
)

export const keyExists = statement<[orgId: number, keyId: number], { id: number }>(
  'keys.exists',
  `select id from api_keys where org_id = $1::int and id = $2::int`,
)

/**
 * Finds an active workspace in which the person may make keys. Owners and admins may use every workspace, members only those that list
 * them.
 */
export const findWorkspace = statement<[orgId: number, workspaceId: number, userId: number | null, mayAll: boolean], { id: number }>(
  'keys.find_workspace',
  `select w.id from workspaces w
   where w.org_id = $1::int and w.id = $2::int and w.archived_at is null
     and ($4::boolean or exists (select 1 from workspace_members m where m.org_id = w.org_id and m.workspace_id = w.id and m.user_id = $3::int))
   for share of w`,
)

export const setCredited = statement<[orgId: number, at: Date]>(
  'keys.set_credited',
  `update orgs set credited_at = $2::timestamptz where id = $1::int and credited_at is null`,
)

/** Turns the standard keys of organisations without credit into trial keys. */
export const beginTrials = statement<[]>(
  'keys.begin_trials',
  `update api_keys k set tier = 'trial' from orgs o
   where o.id = k.org_id and o.credited_at is null and k.tier = 'standard' and k.revoked_at is null`,
)

/** Turns trial keys into standard keys. A limit that equals the trial limit becomes the standard limit. Other limits stay, because somebody chose them. */
export const promoteKeys = statement<
  [orgId: number, trialRpm: number | null, trialDaily: number | null, standardRpm: number | null, standardDaily: number | null],
  { id: number }
>(
  'keys.promote',
  `with locked as materialized (select k.id from api_keys k where k.org_id = $1::int and k.tier = 'trial' order by k.id for no key update)
   update api_keys k set tier = 'standard',
     rpm_limit = case when k.rpm_limit is not distinct from $2::int then $4::int else k.rpm_limit end,
     daily_limit = case when k.daily_limit is not distinct from $3::int then $5::int else k.daily_limit end
   from locked where k.id = locked.id returning k.id`,
)

/**
 * Writes the last uses. A use after the notice of inactivity withdraws the notice. Rows are locked in the order of their ids, so that
 * processes that flush concurrently cannot deadlock.
 */
export const touchKeys = statement<[keyIds: readonly number[], usedAt: readonly Date[]]>(
  'keys.touch',
  `with used as materialized (select * from unnest($1::int[], $2::timestamptz[]) as u(id, at)),
     locked as materialized (select k.id from api_keys k where k.id = any($1::int[]) order by k.id for no key update)
   update api_keys k set last_used_at = greatest(k.last_used_at, used.at),
     inactivity_notice_at = case when used.at >= k.inactivity_notice_at then null else k.inactivity_notice_at end
   from used join locked on locked.id = used.id
   where k.id = used.id`,
)
