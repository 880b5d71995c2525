import { type Command, CommanderError } from 'commander'
import { CommandError, exitCodes } from './command-error.ts'
import { plain } from './command-output.ts'

/** Prepares a program before commands are added. The program then throws instead of ending the process, and runProgram prints the errors. */
export function prepareProgram(program: Command): Command {
  // Options after the name of a command belong to the command, so `memory get --version` does not print the version of the program.
  return program
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: () => {} })
}

/** Ends the process without a message when the program that reads the output stops reading, as in `brigade memory ls | head`. */
export function endWithReader(): void {
  process.stdout.on('error', error => process.exit('code' in error && error.code === 'EPIPE' ? 0 : 1))
  // A failed write to stderr changes neither the work of a command nor its exit code.
  process.stderr.on('error', () => undefined)
}

/**
 * Runs the given arguments. Returns the exit code of a failure, or null when the command has set it. A failure prints one line on stderr. With
 * --json, the line is `{"error":{"message","code","status"}}` with the other fields of the gateway's error.
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

/** Returns the line of a failure. It contains the gateway's code, because docs/reference/errors.md says more about the code. */
function textOf({ message, code, status, evidence }: CommandError): string {
  const request = typeof evidence['request_id'] === 'string' ? `, request ${evidence['request_id']}` : ''
  return plain(`brigade: ${message}${status === null ? '' : ` (${code}${request})`}`)
}

/** Returns the failure. Returns null when the help or the version was requested and printed. */
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
