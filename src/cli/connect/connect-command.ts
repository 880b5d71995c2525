import { Argument, type Command, Option } from 'commander'
import { clientNames, toolsetNames } from '../../connect/connect-plan.ts'
import { addExamples } from '../client-command.ts'
import { wrongUsage } from '../command-error.ts'
import { plain, printJson } from '../command-output.ts'
import type { ConnectFlags } from './connect-params.ts'

/** Adds the command `brigade connect`. */
export function addConnectCommand(program: Command): void {
  const client = new Argument('[client]', 'the client; left out: those of this computer')
  // For the help and for the completion of shells. The command itself says which clients it knows.
  client.argChoices = [...clientNames]
  const command = program
    .command('connect')
    .description("print, or merge into a client's own files, what makes it use this gateway; without a client: find the clients of this computer and ask")
    .addArgument(client)
    .option('--write', "merge it into the client's files and check it with a call; all else in them stays")
    .option('-y, --yes', 'without a client: connect all that are found, and do not ask')
    .option('--user', 'for all projects of this user (the default; of VS Code: --project)')
    .option('--project', 'for the project in this folder')
    .option('--models', 'its own model calls, also when it has another provider now (default: both, where the client can)')
    .option('--tools', 'the tools over MCP')
    .option('--model <id>', 'the model that it starts with', 'auto')
    .option('--agent <name>', 'as this agent, on short-lived tokens that renew themselves; makes the agent when it is missing')
    .option('--bridge', 'tools through a process on this machine (brigade mcp), which knows the key of brigade login')
    .option('--toolsets <list>', `only these tools: ${toolsetNames}`)
    .option('--server-tools', 'also the approved tools of MCP servers of the organisation')
    .option('--trust-tools', 'the client may call the tools without asking (claude-code, codex)')
    .option('--name <name>', 'of the entry', 'brigade')
    .addOption(new Option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)'))
    .addOption(new Option('--key-file <path>', 'file with the key, named in the settings in place of BRIGADE_KEY; tools then go through the bridge'))
    .option('--json', 'print JSON')
  addExamples(command, [
    ['brigade connect', 'finds the clients of this computer and asks which to connect'],
    ['brigade connect codex', 'shows what belongs where, and changes nothing'],
    ['brigade connect codex --write --trust-tools', 'models and tools, in ~/.codex/config.toml'],
    ['brigade connect claude-code --tools --write', 'only the tools, in ~/.claude.json'],
    ['brigade connect cursor --write --agent reviewer', 'tools as the agent reviewer'],
    ['brigade connect vscode --write --server-tools', 'with the approved tools of MCP servers'],
  ])
  command.action(connect)
}

async function connect(given: string | undefined, flags: ConnectFlags): Promise<void> {
  if (given === undefined) return (await import('./connect-wizard.ts')).runWizard(flags)
  const client = clientNames.find(name => name === given)
  if (client === undefined) throw wrongUsage(`"${plain(given)}" is no client that connect knows. It knows ${clientNames.join(', ')}.`)
  const { paramsOf, supported, thisPlace } = await import('./connect-params.ts')
  const params = paramsOf(client, flags)
  if (flags.write === true) return (await import('./connect-run.ts')).connectClients([client], flags, () => params)
  const [{ notesOf, planConnect, snippet }, { printPlan }] = await Promise.all([import('../../connect/connect.ts'), import('./connect-print.ts')])
  const place = await thisPlace()
  const plan = supported(() => planConnect(client, params, place))
  const notes = notesOf(plan, params, place)
  const files = plan.files.map(file => ({ path: file.path, what: file.what, text: snippet(file) }))
  if (flags.json === true) printJson({ client, files, commands: plan.commands, notes })
  else printPlan(plan, files, notes)
}
