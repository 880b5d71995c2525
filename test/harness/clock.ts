import { type Clock, systemClock } from '../../src/platform/clock.ts'

/** The clock of the machine, which a test can move forward. The time of day jumps, and timers run normally. */
export interface MovableClock extends Clock {
  moveTo(ms: number): void
  advance(ms: number): void
}

export function movableClock(startMs = Date.now()): MovableClock {
  let offsetMs = startMs - Date.now()
  return {
    ...systemClock,
    nowMs: () => Date.now() + offsetMs,
    moveTo(ms) {
      offsetMs = ms - Date.now()
    },
    advance(ms) {
      offsetMs += ms
    },
  }
}
