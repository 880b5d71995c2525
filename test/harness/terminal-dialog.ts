/** Runs a program in a pseudo-terminal and answers its questions. */
import { type StartedProgram, startProgram } from './started-program.ts'
import { until } from './until.ts'

/** A program that believes that a person types. */
export interface TerminalProgram {
  readonly ended: StartedProgram['ended']
  /** Everything that the terminal has shown, without the codes that move the cursor. */
  shown(): string
  /** Waits until the terminal shows `question` after the last answer, and then types the line. */
  answer(question: string, line: string): Promise<void>
  /** Types keys without a line end, such as Ctrl-C. */
  press(keys: string): void
}

/** Starts a program in a terminal. Its whole environment is `env`. */
export function startInTerminal(
  words: readonly string[],
  { env, cwd }: { readonly env: Readonly<Record<string, string>>; readonly cwd?: string },
): TerminalProgram {
  // Without exec, the shell around the program would take Ctrl-C too, and give its own exit code.
  const line = words.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  const started = startProgram('script', ['--quiet', '--return', '--command', `exec ${line}`, '/dev/null'], {
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdin: 'open',
    ...(cwd === undefined ? {} : { cwd }),
  })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: codes of a terminal begin with ESC.
  const shown = (): string => started.out().replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
  let read = 0
  return {
    ended: started.ended,
    shown,
    async answer(question, text) {
      await until(() => shown().indexOf(question, read) >= 0, `the terminal shows "${question}" in:\n${shown()}`)
      read = shown().indexOf(question, read) + question.length
      started.child.stdin?.write(`${text}\r`)
    },
    press: keys => void started.child.stdin?.write(keys),
  }
}
