import type { CallPolicy, Capability, KeyLimits, KeyScope, Role } from '../../platform/security/principal.ts'
import { type TierLimits, tierOf } from './key-rules.ts'
import type { KeyRow } from './queries.ts'

/** 'rotated' is a matter of the presented secret, not of the key: the key lives on under a newer one. */
export type KeyState = 'active' | 'disabled' | 'disabled_inactive' | 'expired' | 'revoked' | 'rotated'

/** A key as authentication sees it. The same object is given out while it is cached. */
export interface KeyRecord {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
  /** Role of the live membership; null for a key that no user backs. */
  readonly role: Role | null
  readonly workspaceId: number | null
  readonly name: string
  readonly scope: KeyScope
  readonly limits: KeyLimits
  readonly isTrial: boolean
  readonly capabilities: readonly Capability[]
  /** At most one; empty when nothing is ruled. */
  readonly policies: readonly CallPolicy[]
  /** 'revoked' also when the user behind the key is no member any more. */
  readonly state: KeyState
  readonly expiresAtMs: number | null
  readonly secrets: KeySecrets
}

/** Which secrets open the key: base64 of their hashes. */
export interface KeySecrets {
  readonly current: string
  /** The one before the last rotation; null when the key was never rotated. */
  readonly previous: { readonly hash: string; readonly untilMs: number } | null
}

/** The record of a row; null for no row. */
export function recordOf(row: KeyRow | null, tiers: TierLimits): KeyRecord | null {
  if (row === null) return null
  const { id, orgId, userId, role, workspaceId, name, scope, rpmLimit, dailyLimit } = row
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
    policies: policiesOf(row),
    state: stateOf(row),
    expiresAtMs: row.expiresAt?.getTime() ?? null,
    secrets: secretsOf(row),
  }
}

/** Whether the record has ever heard of this secret. A record that was loaded before a rotation has not heard of the new one. */
export function knowsSecret(record: KeyRecord, hash: string): boolean {
  return record.secrets.current === hash || record.secrets.previous?.hash === hash
}

/** What the key is to somebody who presents this secret at this moment. The same object when nothing is against it. */
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
  const { allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency } = row
  if ([allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency].every(rule => rule === null)) return []
  return [{ owner: 'key', ownerId: row.id, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency }]
}

function stateOf(row: KeyRow): KeyState {
  if (row.revokedAt !== null || (row.userId !== null && row.role === null)) return 'revoked'
  if (!row.enabled) return row.disabledReason === 'inactivity' ? 'disabled_inactive' : 'disabled'
  return 'active'
}
