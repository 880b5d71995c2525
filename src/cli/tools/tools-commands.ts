import type { Command } from 'commander'
import { addExamples } from '../client-command.ts'
import { addToolApprovalCommands } from './tool-approval-commands.ts'
import { addToolCallCommands } from './tool-call-commands.ts'
import { addToolServerCommands } from './tool-server-commands.ts'

/** Adds the commands `brigade tools …`: the tools of MCP servers that a credential may call, and for a person their servers and approvals. */
export function addToolsCommands(program: Command): void {
  const tools = program.command('tools').description('tools of MCP servers: those that you may call, their servers and approvals')
  addExamples(tools, [
    ['brigade tools', 'what this credential may call now'],
    ['brigade tools call weather__forecast \'{"city":"Pune"}\'', 'calls one'],
    ['brigade tools pending', 'definitions that wait for approval'],
  ])
  addToolCallCommands(tools)
  addToolApprovalCommands(tools)
  addToolServerCommands(tools)
}
