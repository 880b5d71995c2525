import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, Option } from 'commander'
import { ConnectError } from '../../connect/connect-error.ts'
import { type ClientName, type ConnectParams, type ConnectPlan, clientNames, defaultScope, paramShapes } from '../../connect/connect-plan.ts'
import { addExamples } from '../client-command.ts'
import { addressOf, clientSettings } from '../client-settings.ts'
import { wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import type { WrittenFile } from './connect-write.ts'

interface ConnectFlags {
  readonly baseUrl?: string
  readonly keyFile?: string
  readonly write?: boolean
  readonly project?: boolean
  readonly user?: boolean
  readonly models?: boolean
  readonly tools?: boolean
  readonly model: string
  readonly agent?: string
  readonly bridge?: boolean
  readonly toolsets?: string
  readonly trustTools?: boolean
  readonly name: string
  readonly json?: boolean
}

/** Adds the command `brigade connect`. */
export function addConnectCommand(program: Command): void {
  const command = program
    .command('connect')
    .description("print, or merge into a client's own files, what makes it use this gateway for models and tools")
    .argument('<client>', clientNames.join(', '))
    .option('--write', "merge it into the client's files; all else in them stays")
    .option('--user', 'for all projects of this user (the default; of VS Code: --project)')
    .option('--project', 'for the project in this folder')
    .option('--models', 'its own model calls, also when it has another provider now (default: both, where the client can)')
    .option('--tools', 'the tools over MCP')
    .option('--model <id>', 'the model that it starts with', 'auto')
    .option('--agent <name>', 'as this agent, on short-lived tokens that renew themselves')
    .option('--bridge', 'tools through a process on this machine (brigade mcp), which knows the key of brigade login')
    .option('--toolsets <list>', 'only these tools: core,memory,usage,images')
    .option('--trust-tools', 'the client may call the tools without asking (claude-code, codex)')
    .option('--name <name>', 'of the entry', 'brigade')
    .addOption(new Option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)'))
    .addOption(new Option('--key-file <path>', 'file with the key, named in the settings in place of BRIGADE_KEY; tools then go through the bridge'))
    .option('--json', 'print JSON')
  addExamples(command, [
    ['brigade connect codex', 'shows what belongs where, and changes nothing'],
    ['brigade connect codex --write --trust-tools', 'models and tools, in ~/.codex/config.toml'],
    ['brigade connect claude-code --tools --write', 'only the tools, in ~/.claude.json'],
    ['brigade connect cursor --write --agent reviewer', 'tools as the agent reviewer'],
  ])
  command.action(connect)
}

async function connect(given: string, flags: ConnectFlags): Promise<void> {
  const client = clientNames.find(name => name === given)
  if (client === undefined) throw wrongUsage(`"${plain(given)}" is no client that connect knows. It knows ${clientNames.join(', ')}.`)
  const params = paramsOf(client, flags)
  const [{ notesOf, planConnect, snippet }, { writePlan }, { clientFolders }, { systemIds }, { existsSync }] = await Promise.all([
    import('../../connect/connect.ts'),
    import('./connect-write.ts'),
    import('../../platform/config.ts'),
    import('../../platform/values/ids.ts'),
    import('node:fs'),
  ])
  const { home, variables } = clientFolders()
  const place = { platform: process.platform, home, project: process.cwd(), env: variables, program: ownProgram(), exists: existsSync }
  const plan = supported(() => planConnect(client, params, place))
  const notes = notesOf(plan, params, place)
  if (flags.write !== true) {
    const files = plan.files.map(file => ({ path: file.path, what: file.what, text: snippet(file) }))
    if (flags.json === true) printJson({ client, files, commands: plan.commands, notes })
    else printPlan(plan, files, notes)
    return
  }
  const written = writePlan(plan, () => systemIds.secret('', 6))
  if (flags.json === true) printJson({ client, files: written, commands: plan.commands, notes })
  else printWritten(written, notes)
}

function paramsOf(client: ClientName, flags: ConnectFlags): ConnectParams {
  if (flags.project && flags.user) throw wrongUsage('--project and --user exclude each other.')
  if (!paramShapes.name.test(flags.name)) throw wrongUsage('--name takes letters, digits, - and _, at most 64.')
  if (flags.agent !== undefined && !paramShapes.agent.test(flags.agent)) throw wrongUsage('--agent takes the name or the id of an agent.')
  if (!paramShapes.model.test(flags.model)) throw wrongUsage('--model takes the id of a model; GET /v1/models lists them.')
  if (flags.toolsets !== undefined && !paramShapes.toolsets.test(flags.toolsets))
    throw wrongUsage('--toolsets takes names with commas between: core,memory,usage,images.')
  const isDefault = !flags.models && !flags.tools
  return {
    baseUrl: flags.baseUrl === undefined ? clientSettings({}).baseUrl : addressOf(flags.baseUrl, '--base-url'),
    name: flags.name,
    scope: flags.project ? 'project' : flags.user ? 'user' : defaultScope(client),
    models: flags.models ? 'yes' : isDefault ? 'default' : 'no',
    tools: flags.tools === true || isDefault,
    model: flags.model,
    agent: flags.agent ?? null,
    bridge: flags.bridge === true || flags.keyFile !== undefined,
    keyFile: flags.keyFile === undefined ? null : resolve(flags.keyFile),
    toolsets: flags.toolsets ?? null,
    trustTools: flags.trustTools === true,
  }
}

/** Returns the plan. Throws CommandError (2) when the client does not support the request. */
function supported(plan: () => ConnectPlan): ConnectPlan {
  try {
    return plan()
  } catch (error) {
    throw error instanceof ConnectError ? wrongUsage(error.message, error) : error
  }
}

/** Returns the paths of the running Node and of brigade.js. Clients start them from any folder, where `npx brigade` would find nothing. */
function ownProgram(): string[] {
  return [process.execPath, fileURLToPath(new URL('../brigade.js', import.meta.url))]
}

function printNotes(notes: readonly string[]): void {
  if (notes.length === 0) return
  printLine('')
  for (const note of notes) printLine(plain(note))
}

function printPlan(plan: ConnectPlan, files: readonly { path: string; what: string; text: string }[], notes: readonly string[]): void {
  for (const { path, what, text } of files) printLine(`${plain(path)}  (${what})\n\n${text.trimEnd().replaceAll(/^(?=.)/gm, '  ')}\n`)
  if (plan.commands.length > 0) printLine(`Or, for the tools alone:\n\n${plan.commands.map(line => `  ${line}`).join('\n')}\n`)
  printLine('Nothing was written; --write merges it into the files.')
  printNotes(notes)
}

function printWritten(written: readonly WrittenFile[], notes: readonly string[]): void {
  for (const { path, what, outcome, changed, kept } of written) {
    printLine(`${outcome === 'unchanged' ? 'unchanged' : outcome === 'created' ? 'created  ' : 'changed  '}  ${plain(path)}  (${what})`)
    for (const name of changed) printLine(`           ${plain(name)}`)
    if (kept.length > 0) printLine(`           kept as it was: ${plain(kept.join(', '))}  (--models sets it)`)
  }
  printNotes(notes)
}
