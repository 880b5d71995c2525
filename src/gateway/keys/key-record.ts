import type { CallPolicy, Capability, KeyLimits, KeyScope, Role } from '../../platform/security/principal.ts'
import { runCapsOf } from '../../platform/security/run-caps.ts'
import { type TierLimits, tierOf } from './key-rules.ts'
import type { KeyRow } from './queries.ts'

/** The states of a key. `rotated` describes the presented secret and not the key: this secret no longer works, and the key works with a newer secret. */
export type KeyState = 'active' | 'disabled' | 'disabled_inactive' | 'expired' | 'revoked' | 'rotated'

/** A key in the form that authentication uses. While a record is cached, every caller receives the same object. */
export interface KeyRecord {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
  /** Role of the user's active membership. Null for a key without a user. */
  readonly role: Role | null
  readonly workspaceId: number | null
  readonly name: string
  readonly scope: KeyScope
  readonly limits: KeyLimits
  readonly isTrial: boolean
  readonly capabilities: readonly Capability[]
  /** The rules of the key for its calls. The list has one element, or none when the key has no rule. */
  readonly policies: readonly CallPolicy[]
  /** The state is also `revoked` when the key's user is no longer an active member. */
  readonly state: KeyState
  readonly expiresAtMs: number | null
  readonly secrets: KeySecrets
}

/** The secrets that open the key, as base64 of their hashes. */
export interface KeySecrets {
  readonly current: string
  /** The secret before the last rotation. Null when the key was never rotated. */
  readonly previous: { readonly hash: string; readonly untilMs: number } | null
}

/** Returns the record of a row, or null when the row is null. */
export function recordOf(row: KeyRow | null, tiers: TierLimits): KeyRecord | null {
  if (row === null) return null
  const { id, orgId, userId, role, workspaceId, name, scope, rpmLimit, dailyLimit } = row
  const state = stateOf(row)
  return {
    id,
    orgId,
    userId,
    role,
    workspaceId,
    name,
    scope,
    limits: { rpmLimit, dailyLimit },
    isTrial: tierOf(row.tier, tiers) === 'trial',
    capabilities: row.capabilities ?? [],
    // A revoked key makes no call, so the cache does not keep its rules.
    policies: state === 'revoked' ? [] : policiesOf(row),
    state,
    expiresAtMs: row.expiresAt?.getTime() ?? null,
    secrets: secretsOf(row),
  }
}

/** Returns whether this hash belongs to the record. A record that was loaded before a rotation does not contain the new hash. */
export function knowsSecret(record: KeyRecord, hash: string): boolean {
  return record.secrets.current === hash || record.secrets.previous?.hash === hash
}

/**
 * Returns the key in the state that it has for this secret at this moment. It is the same object, or a copy in the state `rotated` when the secret no
 * longer works.
 */
export function asPresented(record: KeyRecord, hash: string, nowMs: number): KeyRecord {
  const { current, previous } = record.secrets
  if (current === hash || record.state !== 'active') return record
  return previous?.hash === hash && previous.untilMs > nowMs ? record : { ...record, state: 'rotated' }
}

function secretsOf({ hash, previousHash, previousUntil }: KeyRow): KeySecrets {
  const previous = previousHash === null || previousUntil === null ? null : { hash: previousHash.toString('base64'), untilMs: previousUntil.getTime() }
  return { current: hash.toString('base64'), previous }
}

function policiesOf(row: KeyRow): readonly CallPolicy[] {
  const { allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency, tpmLimit, allowedTools, runCaps } = row
  if ([allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency, tpmLimit, allowedTools, runCaps].every(rule => rule === null)) return []
  const tools = allowedTools === null ? {} : { allowedTools }
  const caps = runCapsOf(runCaps)
  return [
    {
      owner: 'key',
      ownerId: row.id,
      allowedModels,
      allowedProviders,
      maxCostUinr,
      maxOutputTokens,
      maxConcurrency,
      tpmLimit,
      ...tools,
      ...(caps === null ? {} : { run: caps }),
    },
  ]
}

function stateOf(row: KeyRow): KeyState {
  if (row.revokedAt !== null || (row.userId !== null && row.role === null)) return 'revoked'
  if (!row.enabled) return row.disabledReason === 'inactivity' ? 'disabled_inactive' : 'disabled'
  return 'active'
}
