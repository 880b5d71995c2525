import { type MemoryToolCommand, memoryCommandSchema, memoryToolDescription, parseMemoryCommand } from './memory-tool-commands.ts'
import { MemoryCommands, type MemoryToolHandlers, type MemoryToolOptions } from './memory-tool-handlers.ts'

/**
 * Returns the commands of Anthropic's memory tool over shared memory, for `betaMemoryTool(handlers)` of @anthropic-ai/sdk. Edits use compare and
 * swap, so concurrent writers do not overwrite each other.
 */
export function memoryToolHandlers(options: MemoryToolOptions): MemoryToolHandlers {
  return new MemoryCommands(options)
}

/** Returns the tool `memory_20250818`, the type that Claude models know. The fields of `extra`, such as `cache_control`, are added to the definition. */
export function brigadeMemoryTool<Extra extends object = object>(options: MemoryToolOptions, extra?: Extra) {
  return runnable(options, { ...(extra ?? ({} as Extra)), type: 'memory_20250818' as const, name: 'memory' as const })
}

/** Returns the same tool as a function with a JSON schema of its commands, for models that do not know `memory_20250818`. */
export function brigadeMemoryFunction(options: MemoryToolOptions) {
  return runnable(options, { name: 'memory' as const, description: memoryToolDescription, input_schema: memoryCommandSchema })
}

function runnable<Definition extends { readonly name: 'memory' }>(options: MemoryToolOptions, definition: Definition) {
  const handlers = memoryToolHandlers(options)
  return { ...definition, parse: parseMemoryCommand, run: (command: MemoryToolCommand): Promise<string> => runMemoryCommand(handlers, command) }
}

/** Runs one command. */
export function runMemoryCommand(handlers: MemoryToolHandlers, command: MemoryToolCommand): Promise<string> {
  switch (command.command) {
    case 'view':
      return handlers.view(command)
    case 'create':
      return handlers.create(command)
    case 'str_replace':
      return handlers.str_replace(command)
    case 'insert':
      return handlers.insert(command)
    case 'delete':
      return handlers.delete(command)
    case 'rename':
      return handlers.rename(command)
  }
}
