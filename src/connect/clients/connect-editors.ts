import { posix, win32 } from 'node:path'
import { entryEdits, type SettingEdit } from '../connect-edits.ts'
import { wrongUsage } from '../connect-error.ts'
import { bridgeCommand, type ConnectParams, type ConnectPlace, type ConnectPlan, mcpUrl, pathsOf } from '../connect-plan.ts'

/** The fields of a server's entry that belong to one transport. An entry cannot combine fields of two transports. */
const waysOfTransport = ['type', 'url', 'headers', 'command', 'args', 'env'] as const

/** Returns the plan for Cursor. It changes mcp.json of the user or of the project. The person sets the models in Cursor's own dialog. */
export function connectCursor(params: ConnectParams, place: ConnectPlace): ConnectPlan {
  if (params.models === 'yes') throw wrongUsage('Cursor takes models of your own in its settings only, and calls them from its servers. Leave --models out.')
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Cursor replaces the variable.
  const key = '${env:BRIGADE_KEY}'
  const isBridge = params.bridge || params.agent !== null
  const fields = isBridge
    ? { ...bridgeCommand(params, place), ...(params.keyFile === null ? { env: { BRIGADE_KEY: key } } : {}) }
    : { url: mcpUrl(params), headers: { Authorization: `Bearer ${key}` } }
  const folder = params.scope === 'project' ? place.project : place.home
  return {
    client: 'cursor',
    files: [
      {
        path: pathsOf(place).join(folder, '.cursor', 'mcp.json'),
        format: 'jsonc',
        what: 'tools of Cursor',
        edits: entryEdits(['mcpServers', params.name], fields, waysOfTransport),
        isShared: params.scope === 'project',
      },
    ],
    commands: [],
    notes: [...(params.keyFile === null ? ['Cursor sees BRIGADE_KEY when it is started from a shell that has it.'] : []), 'Restart Cursor afterwards.'],
    needsKeyInEnvironment: params.keyFile === null,
  }
}

/** Returns the plan for VS Code. It changes mcp.json of the workspace or of the user's profile. VS Code asks for the key once and stores it itself. */
export function connectVscode(params: ConnectParams, place: ConnectPlace): ConnectPlan {
  if (params.models === 'yes') throw wrongUsage('VS Code takes models of your own in its dialog only (Chat: Manage Language Models). Leave --models out.')
  const inputId = `${params.name}-key`
  const isBridge = params.bridge || params.agent !== null
  const fields = isBridge
    ? { type: 'stdio', ...bridgeCommand(params, place), ...(params.keyFile === null ? { env: { BRIGADE_KEY: `\${input:${inputId}}` } } : {}) }
    : { type: 'http', url: mcpUrl(params), headers: { Authorization: `Bearer \${input:${inputId}}` } }
  const asked: SettingEdit[] =
    isBridge && params.keyFile !== null
      ? []
      : [{ kind: 'include', path: ['inputs'], item: { type: 'promptString', id: inputId, description: 'Brigade API key', password: true } }]
  return {
    client: 'vscode',
    files: [
      {
        path: params.scope === 'project' ? pathsOf(place).join(place.project, '.vscode', 'mcp.json') : vscodeUserFile(place),
        format: 'jsonc',
        what: 'tools of VS Code',
        edits: [...asked, ...entryEdits(['servers', params.name], fields, waysOfTransport)],
        isShared: params.scope === 'project',
      },
    ],
    commands: [],
    notes: asked.length === 0 ? [] : ['VS Code asks for the key when the server starts for the first time (MCP: List Servers) and keeps it.'],
    needsKeyInEnvironment: false,
  }
}

function vscodeUserFile({ platform, home, env }: ConnectPlace): string {
  const last = ['Code', 'User', 'mcp.json'] as const
  if (platform === 'win32') return win32.join(env['APPDATA'] || win32.join(home, 'AppData', 'Roaming'), ...last)
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support', ...last)
  return posix.join(env['XDG_CONFIG_HOME'] || posix.join(home, '.config'), ...last)
}
