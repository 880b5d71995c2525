import { type Clock, systemClock } from '../../src/platform/clock.ts'

/** The machine's clock, on which the pauses between heavy turns last until the test ends them. */
export interface HeldTurnsClock extends Clock {
  /** From now on the pause after a heavy turn does not end. */
  hold(): void
  /** Ends all pauses. */
  release(): void
}

/** Maximum length of the pauses that are held. Pauses of other work are longer, or have a signal. */
const heldMsMax = 2_000

export function heldTurnsClock(): HeldTurnsClock {
  let held: Promise<void> | null = null
  let end = (): void => {}
  return {
    ...systemClock,
    sleep: (ms, signal) => (held !== null && signal === undefined && ms <= heldMsMax ? held : systemClock.sleep(ms, signal)),
    hold() {
      held ??= new Promise(resolve => {
        end = resolve
      })
    },
    release() {
      held = null
      end()
    },
  }
}
