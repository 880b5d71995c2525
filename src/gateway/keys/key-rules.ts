/** What a key may be: names, lives, limits, tiers. Pure. */
import { fail } from '../../platform/errors.ts'
import type { KeyLimits } from '../../platform/security/principal.ts'

export type KeyTier = 'trial' | 'standard'

/** Limits of new keys by tier. `trial` is null where billing is not configured: every key is standard there. */
export interface TierLimits {
  readonly trial: KeyLimits | null
  readonly standard: KeyLimits
}

/** Longest life of a key, in days. */
export const expiresDaysMax = 365
/** Longest time for which the secret before a rotation goes on working, in days. */
export const overlapDaysMax = 7
/** Largest limit that a column of the database takes. */
export const limitMax = 2 ** 31 - 1

/** Throws `bad_request` unless it is a whole number of days from 1 to 365. */
export function checkExpiresDays(days: number): void {
  if (!(Number.isInteger(days) && days >= 1 && days <= expiresDaysMax))
    throw fail('bad_request', { message: `expires_days must be a whole number from 1 to ${expiresDaysMax}.` })
}

/** Throws `bad_request` for a limit that is no whole number from 0 on. */
export function checkLimits(limits: KeyLimits): void {
  for (const limit of [limits.rpmLimit, limits.dailyLimit]) {
    if (limit !== null && !(Number.isInteger(limit) && limit >= 0 && limit <= limitMax))
      throw fail('bad_request', { message: 'A limit must be a whole number that is not negative, or null for none.' })
  }
}

/** The tier that a key counts as: where billing is not configured none is a trial key, whatever it was made as. */
export function tierOf(tier: KeyTier, tiers: TierLimits): KeyTier {
  return tiers.trial === null ? 'standard' : tier
}

/** The tier of a new key: trial until the organisation has received credit for the first time. */
export function tierOfNewKey(creditedAt: Date | null, tiers: TierLimits): KeyTier {
  return tiers.trial !== null && creditedAt === null ? 'trial' : 'standard'
}

/** Limits of a new key of that tier. */
export function defaultLimits(tier: KeyTier, tiers: TierLimits): KeyLimits {
  return (tier === 'trial' ? tiers.trial : null) ?? tiers.standard
}

/** Throws `trial_ceiling` when a trial key would get more than the limits of its tier. */
export function checkCeiling(tier: KeyTier, limits: KeyLimits, tiers: TierLimits): void {
  const ceiling = tiers.trial
  if (tierOf(tier, tiers) !== 'trial' || ceiling === null) return
  if (!exceeds(limits.rpmLimit, ceiling.rpmLimit) && !exceeds(limits.dailyLimit, ceiling.dailyLimit)) return
  throw fail('trial_ceiling', {
    message: `A trial key may have at most ${ceiling.rpmLimit} requests a minute and ${ceiling.dailyLimit} a day. The organisation needs credit for more.`,
  })
}

/** Whether a limit lets more through than another; null is no limit. */
export function exceeds(limit: number | null, ceiling: number | null): boolean {
  return ceiling !== null && (limit === null || limit > ceiling)
}
