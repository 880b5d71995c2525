import type { Clock } from '../../clock.ts'
import type { Terminal } from './terminal.ts'

/** Says what a command does now, and for how long. */
export interface Progress {
  /** Whether somebody sees it. */
  readonly isShown: boolean
  /** Says what happens now, in place of what happened before. */
  now(doing: string): void
  /** Shows a line that stays, while the same work goes on. */
  say(line: string): void
  /** Ends what happens now. With a text, a line stays that has this text and the duration. */
  done(text?: string): void
}

/** Progress that nobody sees. */
export const noProgress: Progress = { isShown: false, now() {}, say() {}, done() {} }

const everyMs = 200

/** Shows progress on a terminal. Without a terminal it shows nothing. A line that stays gets the time since `now` was called. */
export function progressOn(terminal: Terminal | null, clock: Clock): Progress {
  if (terminal === null) return noProgress
  let doing = ''
  let startedMs = 0
  let stop: (() => void) | null = null
  const elapsed = (): string => durationText(clock.monotonicMs() - startedMs)
  // Whole seconds, from the second one on, so that short work does not flicker.
  const show = (): void => {
    const seconds = Math.floor((clock.monotonicMs() - startedMs) / 1000)
    terminal.status(`  … ${doing}${seconds < 1 ? '' : `  ${durationText(seconds * 1000, 0)}`}`)
  }
  const end = (): void => {
    stop?.()
    stop = null
    terminal.status(null)
  }
  return {
    isShown: true,
    now(text) {
      end()
      doing = text
      startedMs = clock.monotonicMs()
      if (!terminal.canReplace) return terminal.lines(`  ${doing} ...`)
      show()
      stop = clock.every(everyMs, show)
    },
    say: line => terminal.lines(`  ${line}`),
    done(text) {
      const took = elapsed()
      end()
      if (text !== undefined) terminal.lines(doneLine(terminal, text, took))
    },
  }
}

/** Writes the duration into the parentheses at the end of the text, or into new ones. */
function doneLine({ paint }: Terminal, text: string, took: string): string {
  const whole = text.endsWith(')') ? `${text.slice(0, -1)}, ${took})` : `${text} (${took})`
  return `  ${paint('green', '✓')} ${whole}`
}

/** Returns a duration for people: `340 ms`, `1.4 s`, `54 s`, `3 min 20 s`. `decimals` is for durations below 10 seconds. */
export function durationText(ms: number, decimals = 1): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / 1000)
  if (ms < 9950) return `${(ms / 1000).toFixed(decimals)} s`
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
