/**
 * The writes that make, change and revoke keys. Each function runs in the caller's transaction, and the caller appends the news. Decision
 * 0116 gives the reasons.
 */

import { isUniqueViolation, type Tx } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import type { KeyLimits, KeyScope } from '../../platform/security/principal.ts'
import { capsAfter, capsText, type RunCapsInput } from '../../platform/security/run-caps.ts'
import { hashKey } from '../../platform/security/secrets.ts'
import { formsOfName } from '../../platform/values/clean-name.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { istDay } from '../../platform/values/ist-time.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { emit, eventId } from '../webhooks/events/events.ts'
import { keyPrefix, newKey } from './key-format.ts'
import { checkCeiling, checkExpiresDays, checkLimits, defaultLimits, type KeyTier, type TierLimits, tierOfNewKey } from './key-rules.ts'
import {
  type ChangeableKey,
  findWorkspace,
  highestNumber,
  insertKey,
  isNameTaken,
  lockKey,
  lockOrg,
  retireExpiredName,
  revokeKey,
  updateKey,
} from './queries.ts'

/** Rules for the calls of a key. Null means no rule. In a new key, an absent field also means no rule. */
export interface KeyPolicies {
  readonly allowedModels?: readonly string[] | null | undefined
  readonly allowedProviders?: readonly string[] | null | undefined
  readonly maxCostUinr?: bigint | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly maxConcurrency?: number | null | undefined
  readonly tpmLimit?: number | null | undefined
  /** Null allows no tool of an MCP server. */
  readonly allowedTools?: readonly string[] | null | undefined
  /** Caps of each run of the key. A cap that is left out does not change. */
  readonly run?: RunCapsInput | null | undefined
}

export interface NewKey {
  readonly orgId: number
  readonly userId: number | null
  /** An active workspace of the organisation. Null means no workspace. */
  readonly workspaceId: number | null
  /** True when only a workspace that lists the user is accepted. */
  readonly isOwnWorkspace?: boolean
  /** 1 to 100 characters, unique among the active keys of the organisation. When null, the name is `key <IST day> <n>`. */
  readonly name: string | null
  readonly scope: KeyScope
  /** Null means no limit. When absent, the default of the key's tier applies. */
  readonly rpmLimit?: number | null | undefined
  readonly dailyLimit?: number | null | undefined
  /** 1 to 365 whole days. When absent, the key does not expire. */
  readonly expiresDays?: number | undefined
  readonly lifecyclePin?: 'keep' | null | undefined
  readonly policies?: KeyPolicies
}

export interface CreatedKey {
  readonly id: number
  /** The whole key. It is returned only here. */
  readonly key: string
  readonly prefix: string
  readonly name: string
  readonly scope: KeyScope
  readonly tier: KeyTier
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
  readonly expiresAt: Date | null
  readonly createdAt: Date
}

/** An absent field leaves the value unchanged. Null removes it. */
export interface KeyChanges extends KeyPolicies {
  readonly name?: string | undefined
  readonly rpmLimit?: number | null | undefined
  readonly dailyLimit?: number | null | undefined
  readonly enabled?: boolean | undefined
  readonly lifecyclePin?: 'keep' | null | undefined
}

/** What the writes need: the source of ids, the time and the limits of the tiers. */
export interface WriteTools {
  readonly ids: Ids
  readonly nowMs: number
  readonly tiers: TierLimits
}

/** Throws when the caller may not have a key with these limits. */
export type AllowLimits = (tier: KeyTier, limits: KeyLimits) => void

const dayMs = 24 * 3600_000
const noKey = (): Error => fail('not_found', { message: 'There is no such key. GET /me/keys lists those of this organisation.' })

/**
 * Makes a key and puts the event `key.created` into the outbox. Throws `bad_name`, `bad_request` and `duplicate_key_name`. Throws `not_found` for an
 * unknown organisation or workspace. Also throws what `allow` throws.
 */
export async function makeKey(tx: Tx, params: NewKey, allow: AllowLimits, { ids, nowMs, tiers }: WriteTools): Promise<CreatedKey> {
  const forms = params.name === null ? [] : formsOfName(params.name)
  if (params.expiresDays !== undefined) checkExpiresDays(params.expiresDays)
  const createdAt = new Date(nowMs)
  const org = await tx.maybe(lockOrg, params.orgId)
  if (org === null) throw fail('not_found', { message: `There is no organisation ${params.orgId}.` })
  const tier = tierOfNewKey(org.creditedAt, tiers)
  const usual = defaultLimits(tier, tiers)
  const { rpmLimit = usual.rpmLimit, dailyLimit = usual.dailyLimit } = params
  checkLimits({ rpmLimit, dailyLimit })
  allow(tier, { rpmLimit, dailyLimit })
  if (params.workspaceId !== null) await checkWorkspace(tx, params, params.workspaceId)
  const name = forms[0] ?? (await unusedName(tx, params.orgId, nowMs))
  const expiresAt = params.expiresDays === undefined ? null : new Date(nowMs + params.expiresDays * dayMs)
  const { scope, policies = {} } = params
  const key = newKey(ids)
  const prefix = keyPrefix(key)
  await tx.exec(retireExpiredName, params.orgId, name, createdAt)
  await checkOldForms(tx, params.orgId, forms, 0)
  const { id } = await namedUniquely(() =>
    tx.one(
      insertKey,
      params.orgId,
      params.userId,
      params.workspaceId,
      name,
      hashKey(key),
      prefix,
      scope,
      tier,
      rpmLimit,
      dailyLimit,
      params.lifecyclePin ?? null,
      policies.allowedModels ?? null,
      policies.allowedProviders ?? null,
      policies.maxCostUinr ?? null,
      policies.maxOutputTokens ?? null,
      policies.maxConcurrency ?? null,
      expiresAt,
      createdAt,
      policies.allowedTools ?? null,
      capsText(capsAfter(null, policies.run ?? null)),
      policies.tpmLimit ?? null,
    ),
  )
  await emit(tx, { id: eventId(ids, nowMs), orgId: params.orgId, type: 'key.created', atMs: nowMs, data: { key_id: id, prefix, tier, scope } })
  return { id, key, prefix, name, scope, tier, rpmLimit, dailyLimit, expiresAt, createdAt }
}

/**
 * Throws `duplicate_key_name` when another key has an older form of the name. A name that was stored before names were normalised can look the same
 * but have other bytes, so the unique index does not find it.
 */
async function checkOldForms(tx: Tx, orgId: number, forms: readonly string[], exceptId: number): Promise<void> {
  if (forms.length > 1 && (await tx.one(isNameTaken, orgId, forms, exceptId)).taken) throw fail('duplicate_key_name')
}

/** Returns the key, locked until the transaction ends. Throws `not_found`, also for a revoked key. */
export async function lockedKey(tx: Tx, orgId: number, keyId: number): Promise<ChangeableKey> {
  const found = await tx.maybe(lockKey, orgId, keyId)
  if (found === null) throw noKey()
  return found
}

/** Changes the fields that `changes` contains. Throws `not_found`, `bad_name`, `bad_request`, `duplicate_key_name`, `trial_ceiling`. */
export async function changeKey(tx: Tx, orgId: number, keyId: number, changes: KeyChanges, { nowMs, tiers }: WriteTools): Promise<void> {
  const before = await lockedKey(tx, orgId, keyId)
  const forms = changes.name === undefined ? [before.name] : formsOfName(changes.name)
  const [name = before.name] = forms
  const limits = { rpmLimit: orElse(changes.rpmLimit, before.rpmLimit), dailyLimit: orElse(changes.dailyLimit, before.dailyLimit) }
  checkLimits(limits)
  // The ceiling is checked only when a limit changes. So other fields of a key that is already above the ceiling can change.
  if (changes.rpmLimit !== undefined || changes.dailyLimit !== undefined) checkCeiling(before.tier, limits, tiers)
  const now = new Date(nowMs)
  if (name !== before.name) await tx.exec(retireExpiredName, orgId, name, now)
  await checkOldForms(tx, orgId, forms, keyId)
  const enabled = changes.enabled ?? before.enabled
  const reason = enabled ? null : changes.enabled === false ? 'manual' : before.disabledReason
  await namedUniquely(() =>
    tx.exec(
      updateKey,
      orgId,
      keyId,
      name,
      limits.rpmLimit,
      limits.dailyLimit,
      enabled,
      reason,
      orElse(changes.lifecyclePin, before.lifecyclePin),
      orElse(changes.allowedModels, before.allowedModels),
      orElse(changes.allowedProviders, before.allowedProviders),
      orElse(changes.maxCostUinr, before.maxCostUinr),
      orElse(changes.maxOutputTokens, before.maxOutputTokens),
      orElse(changes.maxConcurrency, before.maxConcurrency),
      now,
      orElse(changes.allowedTools, before.allowedTools),
      capsText(changes.run === undefined ? before.runCaps : capsAfter(before.runCaps, changes.run)),
      orElse(changes.tpmLimit, before.tpmLimit),
    ),
  )
}

/**
 * Revokes the key permanently and puts the event `key.revoked` into the outbox. Returns false when the key is already revoked or does not
 * exist.
 */
export async function endKey(tx: Tx, orgId: number, keyId: number, { ids, nowMs }: WriteTools): Promise<boolean> {
  const ended = await tx.maybe(revokeKey, orgId, keyId, new Date(nowMs))
  if (ended === null) return false
  await emit(tx, { id: eventId(ids, nowMs), orgId, type: 'key.revoked', atMs: nowMs, data: { key_id: keyId, ...ended } })
  return true
}

async function checkWorkspace(tx: Tx, { orgId, userId, isOwnWorkspace = false }: NewKey, workspaceId: number): Promise<void> {
  const id = rowId(workspaceId)
  if (id === null || (await tx.maybe(findWorkspace, orgId, id, userId, !isOwnWorkspace)) === null)
    throw fail('not_found', { message: `There is no such workspace${isOwnWorkspace ? ' that you are in' : ''}. GET /me/workspaces lists them.` })
}

/** Returns the next free `key <IST day> <n>` of the organisation. */
async function unusedName(tx: Tx, orgId: number, nowMs: number): Promise<string> {
  const start = `key ${istDay(nowMs)} `
  return `${start}${(await tx.one(highestNumber, orgId, start)).highest + 1}`
}

async function namedUniquely<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (isUniqueViolation(error, 'api_keys_active_name'))
      throw fail('duplicate_key_name', { message: 'An active key of that name exists. Choose another name.' })
    throw error
  }
}

function orElse<T>(changed: T | undefined, before: T): T {
  return changed === undefined ? before : changed
}
