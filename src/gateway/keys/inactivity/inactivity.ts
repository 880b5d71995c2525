/** Decides when an unused key gets notice and when it is disabled. Pure. */

const dayMs = 24 * 3600_000

/** The values that the rule uses. Times are Unix milliseconds. */
export interface IdleKey {
  readonly createdAtMs: number
  /** Null when the key was never used. */
  readonly lastUsedAtMs: number | null
  /** When the key was last enabled again. Null when it never was. */
  readonly idleFromMs: number | null
  /** When notice was given. Null when the key has no notice. */
  readonly noticeAtMs: number | null
  readonly isPinned: boolean
}

export interface InactivityRule {
  /** Days without use until the notice. Null when the organisation has switched the rule off. */
  readonly days: number | null
  /** Days between the notice and the disabling of the key. */
  readonly noticeDays: number
}

/** `withdraw` means that the key has a notice but is not idle any more. */
export type InactivityStep = 'none' | 'notice' | 'disable' | 'withdraw'

/** Returns what to do with the key now. A key is disabled only when it has had a notice for `noticeDays` without a break. */
export function inactivityStep(key: IdleKey, rule: InactivityRule, nowMs: number): InactivityStep {
  const idleSinceMs = Math.max(key.createdAtMs, key.lastUsedAtMs ?? 0, key.idleFromMs ?? 0)
  const isIdle = rule.days !== null && !key.isPinned && nowMs - idleSinceMs >= rule.days * dayMs
  if (key.noticeAtMs === null) return isIdle ? 'notice' : 'none'
  // The key was used after the notice. `touchKeys` normally withdraws the notice; this line covers uses that are not written yet.
  if (!isIdle || idleSinceMs > key.noticeAtMs) return 'withdraw'
  return nowMs - key.noticeAtMs >= rule.noticeDays * dayMs ? 'disable' : 'none'
}

/** Returns the Unix milliseconds from which an unused key may be disabled. */
export function disabledFromMs(noticeAtMs: number, rule: InactivityRule): number {
  return noticeAtMs + rule.noticeDays * dayMs
}
