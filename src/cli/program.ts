/** The command line, put together. Each family of commands has a file; what a command needs beyond its flags is loaded when it runs. */
import { Command } from 'commander'
import { version } from '../version.ts'
import { addAdminCommands } from './admin-program.ts'
import { addAgentCommands } from './agent-commands.ts'
import { addBudgetCommand } from './budget-command.ts'
import { addConnectCommand } from './connect-command.ts'
import { addLoginCommand } from './login-command.ts'
import { addMcpCommand } from './mcp-bridge-command.ts'
import { addMemoryCommands } from './memory-commands.ts'
import { prepareProgram } from './run-program.ts'
import { addServerCommands } from './server-commands.ts'
import { addUsageCommand } from './usage-command.ts'
import { addWhoamiCommand } from './whoami-command.ts'

/** A whole command line, that runs words once. */
export function brigadeProgram(): Command {
  const program = prepareProgram(new Command('brigade').description('Brigade, the model gateway for people who run agents').version(version))

  addServerCommands(program)
  program.commandsGroup('Clients of a gateway:')
  addLoginCommand(program)
  addWhoamiCommand(program)
  addAgentCommands(program)
  addMemoryCommands(program)
  addUsageCommand(program)
  addBudgetCommand(program)
  addConnectCommand(program)
  addMcpCommand(program)
  program.commandsGroup('Operators:')
  addAdminCommands(program)
  return program
}
