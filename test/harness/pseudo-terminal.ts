import { spawn, spawnSync } from 'node:child_process'
import { until } from './until.ts'

/** Whether this machine has the `script` of util-linux, which runs a program in a pseudo-terminal. */
export const hasPseudoTerminal = ((): boolean => {
  const { stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' })
  return stdout?.includes('util-linux') === true
})()

/** What a test that needs it says when it is skipped. */
export const noPseudoTerminal = 'the program script of util-linux (not installed)'

/** A program in a pseudo-terminal. */
export interface InTerminal {
  /** Everything that was written so far, with escape sequences. */
  raw(): string
  /** The lines that a person reads now: without styles, and without lines that were replaced. */
  lines(): string[]
  /** Waits for a text among the lines, by default for 90 s. Rejects when the program ends before. */
  shows(text: string, withinMs?: number): Promise<void>
  /** Presses Ctrl-C and resolves with the exit code. */
  interrupt(): Promise<number | null>
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
}

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly columns?: number
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** Runs a program in a pseudo-terminal. Its environment has only PATH and `env`. */
export function inTerminal(words: readonly string[], { env, cwd, columns = 100 }: TerminalOptions): InTerminal {
  const command = `stty cols ${columns} rows 40; exec ${words.map(quoted).join(' ')}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  let isOver = false
  const ended = new Promise<number | null>(resolve =>
    child.once('close', code => {
      isOver = true
      resolve(code)
    }),
  )
  const lines = (): string[] => readableLines(text)
  return {
    raw: () => text,
    lines,
    async shows(wanted, withinMs = 90_000) {
      await until(() => isOver || lines().some(line => line.includes(wanted)), `"${wanted}" in the terminal, which shows:\n${text}`, withinMs)
      if (!lines().some(line => line.includes(wanted))) throw new Error(`the program ended without "${wanted}":\n${text}`)
    },
    interrupt() {
      child.stdin.write('\u0003')
      return ended
    },
    ended,
  }
}

/** Returns what a terminal shows after this output. It knows the sequences that Brigade writes: styles, and the erasure of the line. */
function readableLines(output: string): string[] {
  return output.split('\n').map(line =>
    (line.replace(/\r$/, '').split('\r\u001b[2K').at(-1) ?? '')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin with this character.
      .replace(/\u001b\[\d+m/g, ''),
  )
}
