import type { Attempt } from '../routing/plan.ts'
import type { UsageEvent } from '../usage/record.ts'

/** Told of calls for the figures of the process. It must not throw, and a call waits for it: plain counting only. */
export interface CallWatch {
  /** A call has ended behind its first dial, with what goes into the books. */
  settled(event: UsageEvent): void
  /** A dial has failed; `reason` is a class of failure or the provider's status. */
  routeFailed(attempt: Attempt, reason: string): void
}
