/** Runs the same commands with two memory tools: the one of the installed SDK on a temporary folder, and the toolkit's on a gateway. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BetaLocalFilesystemMemoryTool } from '@anthropic-ai/sdk/tools/memory/node'
import type { MemoryClient } from '../../../src/agents/toolkit/memory-client/memory-client.ts'
import { memoryToolHandlers, runMemoryCommand } from '../../../src/agents/toolkit/memory-tool/memory-tool.ts'
import type { MemoryToolCommand } from '../../../src/agents/toolkit/memory-tool/memory-tool-commands.ts'

/** The result of a command: a reply, or the message of the thrown error. */
export type Answer = { readonly reply: string } | { readonly failure: string }

/** Runs one command with both tools. */
export type Pair = (command: MemoryToolCommand) => Promise<{ readonly theirs: Answer; readonly ours: Answer }>

/** Returns both tools with empty memory. `dispose` removes the folder. */
export async function memoryToolPair(memory: MemoryClient, root: string): Promise<{ run: Pair; dispose(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-memory-tool-'))
  const sdk = await BetaLocalFilesystemMemoryTool.init(folder)
  const brigade = memoryToolHandlers({ memory, root })
  // A folder has 4096 bytes on most file systems. Elsewhere its size is not compared.
  const isUsual = statSync(join(folder, 'memories')).size === 4096
  const comparable = (text: string): string =>
    isUsual || !text.startsWith("Here're") ? text : text.replace(/^\S+(\t.*\/)$/gm, '4K$1').replace(/^(.*\n)\S+\t/, '$14K\t')
  return {
    run: async command => ({
      // Node's messages name the folder of the host, and the toolkit has no such folder.
      theirs: await answerOf(async () => comparable(await runSdk(sdk, command)), folder),
      ours: await answerOf(() => runMemoryCommand(brigade, command)),
    }),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function runSdk(sdk: BetaLocalFilesystemMemoryTool, command: MemoryToolCommand): Promise<string> {
  return sdk[command.command](command as never)
}

async function answerOf(run: () => Promise<string>, folder = '\0'): Promise<Answer> {
  try {
    return { reply: await run() }
  } catch (failure) {
    return { failure: String((failure as Error).message).replaceAll(folder, '') }
  }
}
