import { type Clock, systemClock } from '../../../../platform/clock.ts'

/** The clock of the machine, set back to the past and moved on from there. Timers run normally. */
export interface MovedClock extends Clock {
  /** Sets the time of day. */
  moveTo(ms: number): void
  /** Sets the time of day to that of the machine, from now on. */
  catchUp(): void
}

export function movedClock(startMs: number): MovedClock {
  let offsetMs = startMs - systemClock.nowMs()
  return {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + offsetMs,
    moveTo(ms) {
      offsetMs = ms - systemClock.nowMs()
    },
    catchUp() {
      offsetMs = 0
    },
  }
}
