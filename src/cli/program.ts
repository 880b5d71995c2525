/** Assembles the command line. Each family of commands has a file. The code that a command needs in addition to its flags is loaded when it runs. */
import { Command } from 'commander'
import { version } from '../version.ts'
import { addLoginCommand } from './account/login-command.ts'
import { addLogoutCommand } from './account/logout-command.ts'
import { addWhoamiCommand } from './account/whoami-command.ts'
import { addAgentCommands } from './agent/agent-commands.ts'
import { addChatCommand } from './chat/chat-command.ts'
import { addCompletionCommand } from './completion/completion-command.ts'
import { addConnectCommand } from './connect/connect-command.ts'
import { addMcpCommand } from './mcp-bridge/mcp-bridge-command.ts'
import { addMemoryCommands } from './memory/memory-commands.ts'
import { addAdminCommands } from './operator/admin/admin-program.ts'
import { addBackupCommands } from './operator/backup-commands.ts'
import { addMasterKeyCommands } from './operator/master-key-program.ts'
import { addMigrateDataCommand } from './operator/migrate-data-command.ts'
import { addServerCommands } from './operator/server-commands.ts'
import { addKeysCommands } from './person/keys-commands.ts'
import { addOpenCommand } from './person/open-command.ts'
import { addProvidersCommands } from './person/providers-commands.ts'
import { addBudgetCommand } from './reports/budget-command.ts'
import { addRunsCommands } from './reports/runs-commands.ts'
import { addUsageCommand } from './reports/usage-command.ts'
import { addVerifyCommand } from './reports/verify-command.ts'
import { prepareProgram } from './run-program.ts'
import { addToolsCommands } from './tools/tools-commands.ts'
import { addLogsCommand } from './watch/logs-command.ts'
import { addStatusCommand } from './watch/status-command.ts'
import { addTopCommand } from './watch/top-command.ts'

const afterHelp = `
Clients find their gateway in $BRIGADE (its address) and $BRIGADE_KEY (an API key or agent token), else in what brigade login keeps.
Exit codes: 0 done, 1 failed, 2 typed wrong, 3 credential refused, 4 not there, 5 over a budget or rate, 6 conflict.

Examples:
  brigade login
  brigade agent create reviewer --budget-inr 500
  brigade agent token reviewer
  brigade memory put agents/reviewer/notes.md --text "The build is green."
  brigade connect
  brigade status

docs/guides/cli.md has more; brigade <command> --help has the flags and examples of a command.`

/** Returns a complete command line. It can parse only one list of arguments. */
export function brigadeProgram(): Command {
  const program = prepareProgram(new Command('brigade').description('Brigade, the model gateway for people who run agents').version(version))

  addServerCommands(program)
  program.commandsGroup('Clients of a gateway:')
  addLoginCommand(program)
  addLogoutCommand(program)
  addWhoamiCommand(program)
  addOpenCommand(program)
  addStatusCommand(program)
  addLogsCommand(program)
  addTopCommand(program)
  addChatCommand(program)
  addAgentCommands(program)
  addMemoryCommands(program)
  addUsageCommand(program)
  addRunsCommands(program)
  addBudgetCommand(program)
  addKeysCommands(program)
  addProvidersCommands(program)
  addToolsCommands(program)
  addConnectCommand(program)
  addMcpCommand(program)
  addVerifyCommand(program)
  addCompletionCommand(program)
  program.commandsGroup('Operators:')
  addAdminCommands(program)
  addBackupCommands(program)
  addMigrateDataCommand(program)
  addMasterKeyCommands(program)
  return program.addHelpText('after', afterHelp)
}
