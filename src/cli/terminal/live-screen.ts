import { systemClock } from '../../platform/clock.ts'

/** Clears the screen and moves the cursor to the top. */
const clearScreen = '\u001b[H\u001b[2J'

/** Returns whether stdout is a terminal, on which a table can be drawn again in place. */
export function isScreen(): boolean {
  return process.stdout.isTTY === true
}

/** Returns how many lines and columns the terminal has. */
export function screenSize(): { readonly rows: number; readonly columns: number } {
  return { rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 }
}

/**
 * Draws the lines again every `everyMs` until Ctrl-C. Lines that do not fit on the screen are cut, so that nothing scrolls. An error of `lines` ends it.
 */
export async function redraw(lines: () => Promise<readonly string[]>, everyMs: number): Promise<void> {
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    while (!stopped.signal.aborted) {
      const drawn = await lines()
      const { rows, columns } = screenSize()
      process.stdout.write(
        clearScreen +
          drawn
            .slice(0, rows - 1)
            .map(line => [...line].slice(0, columns).join(''))
            .join('\n') +
          '\n',
      )
      await systemClock.sleep(everyMs, stopped.signal).catch(() => undefined)
    }
  } finally {
    process.removeListener('SIGINT', stop)
    process.removeListener('SIGTERM', stop)
  }
}
