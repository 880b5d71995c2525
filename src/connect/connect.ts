/** Makes the plan that connects a client to a gateway. It reads and writes no file, so that the command line and the gateway share it. */
import { connectClaudeCode } from './clients/connect-claude-code.ts'
import { connectCodex } from './clients/connect-codex.ts'
import { connectCursor, connectVscode } from './clients/connect-editors.ts'
import { connectOpencode } from './clients/connect-opencode.ts'
import { wrongUsage } from './connect-error.ts'
import { type ClientName, type ConnectParams, type ConnectPlace, type ConnectPlan, type PlannedFile, serverToolset } from './connect-plan.ts'
import { editJsonc } from './formats/connect-jsonc.ts'
import { editToml } from './formats/connect-toml.ts'

/**
 * Characters that end quotes, are replaced within them, or escape them, in PowerShell or in cmd. Any member chooses the name of an agent, and others paste the
 * command line.
 */
const unquotable = /["\u201c-\u201f%$`!]|\\$/

/** Returns the settings for each file. Throws ConnectError for a request that the client does not support. */
export function planConnect(client: ClientName, params: ConnectParams, place: ConnectPlace): ConnectPlan {
  if (params.trustTools && client !== 'claude-code' && client !== 'codex')
    throw wrongUsage(`--trust-tools is for claude-code and codex; ${client} asks in its own way.`)
  if (params.agent !== null && place.platform === 'win32' && unquotable.test(params.agent))
    throw wrongUsage('The name of this agent has characters that the shells of Windows act on, also within quotes. Name the agent by its id.')
  switch (client) {
    case 'claude-code':
      return connectClaudeCode(params, place)
    case 'codex':
      return connectCodex(params, place)
    case 'cursor':
      return connectCursor(params, place)
    case 'opencode':
      return connectOpencode(params, place)
    case 'vscode':
      return connectVscode(params, place)
  }
}

/** Returns what the file would contain if it had no other settings. */
export function snippet({ format, edits }: PlannedFile): string {
  return format === 'toml' ? editToml('', edits) : editJsonc('', edits)
}

/** Returns the sentences that the person reads after the plan. */
export function notesOf(plan: ConnectPlan, { agent, bridge, keyFile, toolsets }: ConnectParams, { program }: ConnectPlace): string[] {
  const isOfMachine = agent !== null || bridge
  const isShared = plan.files.some(file => file.isShared)
  return [
    ...plan.notes,
    ...(plan.needsKeyInEnvironment ? ['The files hold no key: the client reads BRIGADE_KEY from its environment, so export it where the client starts.'] : []),
    ...(agent === null
      ? []
      : [
          `Tokens are minted with ${keyFile === null ? 'BRIGADE_KEY or the key of brigade login' : 'the key of that file'}, when they are needed. \`brigade connect --write\` makes the agent "${agent}" if it is missing.`,
        ]),
    ...(agent !== null && toolsets?.split(',').some(name => name.startsWith(serverToolset))
      ? [`"${agent}" may call no tool of an MCP server until a rule names it: \`brigade agent update <agent> --allowed-tools <names>\`.`]
      : []),
    ...(isOfMachine && program.length > 1
      ? [`The settings name node and this brigade.js by their paths on this machine${isShared ? ': do not commit them' : ''}.`]
      : []),
    ...(isOfMachine && program.length === 1
      ? [`The settings start the command ${program.join('')}. With --write, \`brigade connect\` writes its path on the machine instead.`]
      : []),
  ]
}
