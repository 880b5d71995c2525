import type { Attempt } from '../routing/plan.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { UsageDoubt } from '../wire/usage.ts'

/** Told of calls for the figures of the process. It must not throw, and a call waits for it: plain counting only. */
export interface CallWatch {
  /** A call has ended behind its first dial, with what goes into the books. */
  settled(event: UsageEvent): void
  /** A dial has failed; `reason` is a class of failure or the provider's status. */
  routeFailed(attempt: Attempt, reason: string): void
  /** A provider has reported a usage far from what was asked or shown. */
  usageDoubted(attempt: Attempt, doubt: UsageDoubt): void
}
