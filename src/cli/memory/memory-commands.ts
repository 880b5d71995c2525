import type { Command } from 'commander'
import { addMemoryReadCommands } from './memory-read-commands.ts'
import { addMemoryShareCommands } from './memory-share-commands.ts'
import { addMemoryWriteCommands } from './memory-write-commands.ts'

/** Adds the commands `brigade memory …`: the memory that agents and people share. */
export function addMemoryCommands(program: Command): void {
  const memory = program.command('memory').alias('mem').description('shared memory: get, put, ls, search, append, history, restore, rm, promote, shares')
  memory.commandsGroup('Read:')
  addMemoryReadCommands(memory)
  memory.commandsGroup('Write:')
  addMemoryWriteCommands(memory)
  memory.commandsGroup('Share:')
  addMemoryShareCommands(memory)
}
