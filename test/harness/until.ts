import { systemClock } from '../../src/platform/clock.ts'

/** Waits until the condition holds. Throws an error with `what` after the deadline. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, deadlineMs = 60_000): Promise<void> {
  const endMs = systemClock.monotonicMs() + deadlineMs
  while (!(await holds())) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await systemClock.sleep(10)
  }
}
