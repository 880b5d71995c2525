import { type Command, CommanderError } from 'commander'
import { CommandError, exitCodes } from './command-error.ts'
import { plain } from './command-output.ts'

/** Makes a program, before it has commands, throw where it would end the process, and leave the printing of errors to runProgram. */
export function prepareProgram(program: Command): Command {
  // Options of a command stand behind it: `memory get --version` is not the version of the program.
  return program
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: () => {} })
}

/** Who reads our output may stop reading: `brigade memory ls | head`. Then the process ends, quietly. */
export function endWithReader(): void {
  process.stdout.on('error', error => process.exit('code' in error && error.code === 'EPIPE' ? 0 : 1))
  // Words that nobody reads any more change nothing of what a command does, nor of its exit code.
  process.stderr.on('error', () => undefined)
}

/**
 * Runs the words that were typed; the exit code of a failure, or null: what the command has set stands. A failure is one line on stderr,
 * or with --json `{"error":{"message","code","status"}}` and what the gateway said beside it.
 */
export async function runProgram(program: Command, words: readonly string[]): Promise<number | null> {
  try {
    await program.parseAsync(words)
  } catch (thrown) {
    const failure = failureOf(thrown)
    if (failure !== null) {
      process.stderr.write(`${asksForJson(words) ? jsonOf(failure) : textOf(failure)}\n`)
      return failure.exitCode
    }
  }
  return null
}

function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf('--')
  return words.slice(0, end < 0 ? undefined : end).includes('--json')
}

function jsonOf({ message, code, status, evidence }: CommandError): string {
  return JSON.stringify({ error: { message, code, status }, ...evidence })
}

/** With the gateway's code, because docs/reference/errors.md says more about it. */
function textOf({ message, code, status, evidence }: CommandError): string {
  const request = typeof evidence['request_id'] === 'string' ? `, request ${evidence['request_id']}` : ''
  return plain(`brigade: ${message}${status === null ? '' : ` (${code}${request})`}`)
}

/** Null: help or the version was asked for and printed. */
function failureOf(thrown: unknown): CommandError | null {
  if (thrown instanceof CommandError) return thrown
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return null
    const message =
      thrown.code === 'commander.help'
        ? 'say which command; the list is above.'
        : `${thrown.message.replace(/^error: /, '').replace(/\.+$/, '')}. Add --help to see how.`
    return new CommandError(message, { exitCode: exitCodes.wrongUsage, code: 'usage' })
  }
  return new CommandError(thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown })
}
