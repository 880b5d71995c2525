/** When a key that nobody uses gets notice, and when it is disabled. Pure. */

const dayMs = 24 * 3600_000

/** What the rule looks at. Times are Unix milliseconds. */
export interface IdleKey {
  readonly createdAtMs: number
  /** null: never used. */
  readonly lastUsedAtMs: number | null
  /** When it was last enabled again; null: never. */
  readonly idleFromMs: number | null
  /** When notice was given; null: there is no notice. */
  readonly noticeAtMs: number | null
  readonly isPinned: boolean
}

export interface InactivityRule {
  /** Days without use until the notice; null: the organisation has switched the rule off. */
  readonly days: number | null
  /** Days between the notice and the disabling. */
  readonly noticeDays: number
}

/** 'withdraw': there is a notice that has no ground any more. */
export type InactivityStep = 'none' | 'notice' | 'disable' | 'withdraw'

/** What is to be done with the key now. A key is never disabled without a notice that stood for the whole time. */
export function inactivityStep(key: IdleKey, rule: InactivityRule, nowMs: number): InactivityStep {
  const idleSinceMs = Math.max(key.createdAtMs, key.lastUsedAtMs ?? 0, key.idleFromMs ?? 0)
  const isIdle = rule.days !== null && !key.isPinned && nowMs - idleSinceMs >= rule.days * dayMs
  if (key.noticeAtMs === null) return isIdle ? 'notice' : 'none'
  // Used after the notice: the flush of uses takes the notice back too, this is for uses that it has not seen.
  if (!isIdle || idleSinceMs > key.noticeAtMs) return 'withdraw'
  return nowMs - key.noticeAtMs >= rule.noticeDays * dayMs ? 'disable' : 'none'
}

/** The moment from which an unused key may be disabled. */
export function disabledFromMs(noticeAtMs: number, rule: InactivityRule): number {
  return noticeAtMs + rule.noticeDays * dayMs
}
