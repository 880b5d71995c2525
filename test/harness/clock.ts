import { type Clock, systemClock } from '../../src/platform/clock.ts'

/** The machine's clock, which a test can put forward: timers run as ever, the time of day jumps. */
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
