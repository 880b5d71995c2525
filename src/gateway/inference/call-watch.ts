import type { Attempt } from '../routing/plan.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { UsageDoubt } from '../wire/usage.ts'

/** Counts calls for the metrics of the process. Its methods must only count and must not throw, because a call waits for them. */
export interface CallWatch {
  /** A dialed call has ended. The event is what the usage rows record. */
  settled(event: UsageEvent): void
  /** A dial has failed; `reason` is a class of failure or the provider's status. */
  routeFailed(attempt: Attempt, reason: string): void
  /** A provider has reported a usage far from what was asked or shown. */
  usageDoubted(attempt: Attempt, doubt: UsageDoubt): void
}
