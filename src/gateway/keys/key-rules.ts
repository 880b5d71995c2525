/** Rules for the names, lifetimes, limits and tiers of keys. Pure. */
import { fail } from '../../platform/errors.ts'
import type { CallPolicy, KeyLimits } from '../../platform/security/principal.ts'

export type KeyTier = 'trial' | 'standard'

/** Limits of new keys by tier. `trial` is null when billing is not configured. Then every key is a standard key. */
export interface TierLimits {
  readonly trial: KeyLimits | null
  readonly standard: KeyLimits
}

/** Longest lifetime of a key, in days. */
export const expiresDaysMax = 365
/** Longest time for which the old secret works after a rotation, in days. */
export const overlapDaysMax = 7
/** Largest limit that fits into the database column. */
export const limitMax = 2 ** 31 - 1
/** Maximum number of bytes of the ids of one allow-list, of a key or of an agent. Lists, caches and every call read it. */
export const allowListMaxBytes = 20_000

/** Returns whether the ids of an allow-list have at most `allowListMaxBytes` together. */
export function isShortList(ids: readonly string[]): boolean {
  return ids.reduce((bytes, id) => bytes + Buffer.byteLength(id), 0) <= allowListMaxBytes
}

/** Bytes of an id in memory without its characters, and of the fields of a rule. */
const idBytes = 32
const policyBytes = 256

/** Returns about how many bytes of memory rules take. Caches of rules are bounded by it. */
export function bytesOfPolicies(policies: readonly CallPolicy[]): number {
  let bytes = 0
  for (const { allowedModels, allowedProviders, allowedTools } of policies) {
    bytes += policyBytes
    for (const ids of [allowedModels, allowedProviders, allowedTools]) for (const id of ids ?? []) bytes += idBytes + 2 * id.length
  }
  return bytes
}

/** Throws `bad_request` unless `days` is a whole number from 1 to 365. */
export function checkExpiresDays(days: number): void {
  if (!(Number.isInteger(days) && days >= 1 && days <= expiresDaysMax))
    throw fail('bad_request', { message: `expires_days must be a whole number from 1 to ${expiresDaysMax}.` })
}

/** Throws `bad_request` unless each limit is null or a whole number from 0 to `limitMax`. */
export function checkLimits(limits: KeyLimits): void {
  for (const limit of [limits.rpmLimit, limits.dailyLimit]) {
    if (limit !== null && !(Number.isInteger(limit) && limit >= 0 && limit <= limitMax))
      throw fail('bad_request', { message: 'A limit must be a whole number that is not negative, or null for none.' })
  }
}

/** Returns the tier that applies to a key. When billing is not configured, every key is a standard key, whatever its stored tier is. */
export function tierOf(tier: KeyTier, tiers: TierLimits): KeyTier {
  return tiers.trial === null ? 'standard' : tier
}

/** Returns the tier of a new key. The tier is `trial` until the organisation receives its first credit. It is `standard` when billing is not configured. */
export function tierOfNewKey(creditedAt: Date | null, tiers: TierLimits): KeyTier {
  return tiers.trial !== null && creditedAt === null ? 'trial' : 'standard'
}

/** Returns the limits of a new key of this tier. */
export function defaultLimits(tier: KeyTier, tiers: TierLimits): KeyLimits {
  return (tier === 'trial' ? tiers.trial : null) ?? tiers.standard
}

/** Throws `trial_ceiling` when a trial key would get higher limits than its tier allows. */
export function checkCeiling(tier: KeyTier, limits: KeyLimits, tiers: TierLimits): void {
  const ceiling = tiers.trial
  if (tierOf(tier, tiers) !== 'trial' || ceiling === null) return
  if (!exceeds(limits.rpmLimit, ceiling.rpmLimit) && !exceeds(limits.dailyLimit, ceiling.dailyLimit)) return
  throw fail('trial_ceiling', {
    message: `A trial key may have at most ${ceiling.rpmLimit} requests a minute and ${ceiling.dailyLimit} a day. The organisation needs credit for more.`,
  })
}

/** Returns whether `limit` allows more than `ceiling`. Null means no limit. */
export function exceeds(limit: number | null, ceiling: number | null): boolean {
  return ceiling !== null && (limit === null || limit > ceiling)
}
