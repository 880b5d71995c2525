/**
 * Shows on a terminal what a script does and for how long. It is the twin of src/platform/observe/terminal/progress.ts for scripts that run before anything is
 * installed or built. Without a terminal a step is one plain line at its beginning.
 */

const everyMs = 200
const eraseLine = '\r\u001b[2K'
const { stderr } = process
const isLive = stderr.isTTY === true && process.env.TERM !== 'dumb'

/** The line at the bottom of the terminal. Empty when there is none. */
let status = ''

const paint = (on, off, text) => (stderr.isTTY && stderr.hasColors() ? `\u001b[${on}m${text}\u001b[${off}m` : text)

function show(text) {
  const next = text === '' ? '' : paint(2, 22, text.slice(0, Math.max(20, (stderr.columns ?? 80) - 1)))
  if (next === status) return
  status = next
  stderr.write(`${eraseLine}${status}`)
}

/** Returns a duration for people: `1.4 s`, `54 s`, `3 min 20 s`. */
function durationText(ms, decimals = 1) {
  const seconds = Math.round(ms / 1000)
  if (ms < 9950) return `${(ms / 1000).toFixed(decimals)} s`
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Whether the output of programs must be kept back while a step runs, because the step has a line on the terminal that changes. */
export const keepsOutput = isLive

/** The end of an output that is kept back has at most this many characters. */
export const outputMaxChars = 64 * 1024

/** Writes the output of a program above the line of the running step. */
export function writeOutput(text) {
  if (text === '') return
  if (status !== '') stderr.write(eraseLine)
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  if (status !== '') stderr.write(status)
}

/**
 * Runs one step. `doing` says what happens now. `done` returns from the result what was done, or null when the step failed. On a terminal that line stays, with
 * the duration. `plain` is the line for other outputs.
 */
export async function step({ doing, plain, done }, work) {
  if (!isLive) {
    stderr.write(`${plain}\n`)
    return await work()
  }
  const startedMs = performance.now()
  const elapsed = () => durationText(performance.now() - startedMs)
  const tick = () => {
    const seconds = Math.floor((performance.now() - startedMs) / 1000)
    show(`  … ${doing}${seconds < 1 ? '' : `  ${durationText(seconds * 1000, 0)}`}`)
  }
  tick()
  const timer = setInterval(tick, everyMs)
  try {
    const result = await work()
    const text = done(result)
    show('')
    if (text !== null) stderr.write(`  ${paint(32, 39, '✓')} ${text} (${elapsed()})\n`)
    return result
  } finally {
    clearInterval(timer)
    show('')
  }
}
