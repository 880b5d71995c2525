/** The progress of commands that take long. It is shown on stderr, and only when that is a terminal. */
import { systemClock } from '../../platform/clock.ts'
import { type Progress, progressOn } from '../../platform/observe/terminal/progress.ts'
import { terminalOf } from '../../platform/observe/terminal/terminal.ts'

/** Returns the progress of a command. */
export function commandProgress(): Progress {
  return progressOn(terminalOf(process.stderr), systemClock)
}

/** Runs work under a first word about it. Whatever is shown last goes away when the work ends or fails. */
export async function withProgress<T>(progress: Progress, doing: string, work: () => Promise<T>): Promise<T> {
  progress.now(doing)
  try {
    return await work()
  } finally {
    progress.done()
  }
}

/** Shows a line about the work that goes on. It stays on a terminal, and without a terminal it is a plain line on stderr. */
export function noteLine(progress: Progress, line: string): void {
  if (progress.isShown) progress.say(line)
  else process.stderr.write(`${line}\n`)
}

/** Notes a step of a command that reports its own steps. Without a terminal the step is a plain line on stderr. */
export function noteStep(progress: Progress, step: string): void {
  if (progress.isShown) progress.now(step.replace(/…$/, ''))
  else process.stderr.write(`${step}\n`)
}
