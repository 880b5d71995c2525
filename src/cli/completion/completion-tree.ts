/** The commands and options of the program, as the scripts for shells need them. */
import type { Argument, Command, Option } from 'commander'

/** An option of a command. */
export interface TreeOption {
  /** `--json`, `-y`. */
  readonly flags: readonly string[]
  readonly what: string
  /** What its value is. Null when it takes none. */
  readonly value: 'file' | 'text' | null
  /** The values that it accepts, when there are only some. */
  readonly choices: readonly string[]
}

/** A command with the words that may follow it. */
export interface TreeCommand {
  /** The words of the command after the name of the program, each with a space before it: ` agent create`. The program itself is ''. */
  readonly at: string
  /** Other ways to type the last word. */
  readonly aliases: readonly string[]
  readonly commands: readonly { readonly name: string; readonly what: string }[]
  readonly options: readonly TreeOption[]
  /** The values that its arguments accept, when there are only some. */
  readonly choices: readonly string[]
  readonly takesFile: boolean
}

const isFile = (name: string): boolean => /file|path|folder|attestation/.test(name)

/** Returns the program and all its commands. */
export function completionTree(program: Command): TreeCommand[] {
  return treeOf(program, '')
}

function treeOf(command: Command, at: string): TreeCommand[] {
  const help = command.createHelp()
  const below = help.visibleCommands(command)
  const one: TreeCommand = {
    at,
    aliases: command.aliases(),
    commands: below.map(child => ({ name: child.name(), what: oneLine(child.description()) })),
    options: help.visibleOptions(command).map(optionOf),
    choices: command.registeredArguments.flatMap(({ argChoices }: Argument) => argChoices ?? []),
    takesFile: command.registeredArguments.some(argument => isFile(argument.name())),
  }
  // The word `help` has no command of its own below the program.
  return [one, ...below.filter(child => child.name() !== 'help').flatMap(child => treeOf(child, `${at} ${child.name()}`))]
}

function optionOf({ long, short, flags, description, required, optional, argChoices }: Option): TreeOption {
  return {
    flags: [long, short].filter(flag => flag !== undefined && flag !== null),
    what: oneLine(description),
    value: required || optional ? (/<[^>]*(file|path|folder|dir)[^>]*>/.test(flags) ? 'file' : 'text') : null,
    choices: argChoices ?? [],
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
