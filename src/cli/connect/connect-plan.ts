/** The plan that connects a client, before anything is printed or written. */
import type { SettingEdit } from './connect-edits.ts'

/** Clients that `brigade connect` knows. */
export const clientNames = ['claude-code', 'codex', 'cursor', 'opencode', 'vscode'] as const
export type ClientName = (typeof clientNames)[number]

/** The parameters of a connection. */
export interface ConnectParams {
  /** The address of the gateway, without a slash at the end. */
  readonly baseUrl: string
  /** The name of the entries that are written. */
  readonly name: string
  readonly scope: 'project' | 'user'
  /** Whether the client's own model calls go through the gateway. With `default` they do only when its settings choose no other provider yet. */
  readonly models: 'yes' | 'default' | 'no'
  readonly tools: boolean
  /** Model that the client starts with. */
  readonly model: string
  /** The agent that makes the calls, with tokens that are minted when they are needed. */
  readonly agent: string | null
  /** Whether the tools use `brigade mcp` on this machine in place of HTTP. An agent always needs it. */
  readonly bridge: boolean
  /** The file with the key. Null means BRIGADE_KEY, and for this program `brigade login` too. */
  readonly keyFile: string | null
  /** The value of `?toolsets=`. Null means all. */
  readonly toolsets: string | null
  /** Whether the client may call the tools without a question to the person. */
  readonly trustTools: boolean
}

/** The machine that the client runs on. */
export interface ConnectPlace {
  readonly platform: string
  readonly home: string
  /** Folder of the project. */
  readonly project: string
  /** Variables that move the clients' files. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The words that start this program: node and its file. */
  readonly program: readonly string[]
  readonly exists: (path: string) => boolean
}

/** A file of the client and its planned content. */
export interface PlannedFile {
  readonly path: string
  readonly format: 'jsonc' | 'toml'
  /** The purpose of the file, for the person. */
  readonly what: string
  readonly edits: readonly SettingEdit[]
  /** Whether others read the file too. It must then contain nothing that belongs only to this machine or person. */
  readonly isShared: boolean
}

/** Everything that the person reads about the plan. */
export interface ConnectPlan {
  readonly client: ClientName
  readonly files: readonly PlannedFile[]
  /** Command lines that do the same as a file, for clients that have them. */
  readonly commands: readonly string[]
  /** Further steps for the person, one sentence each. */
  readonly notes: readonly string[]
  /** Whether the client reads BRIGADE_KEY from its environment. */
  readonly needsKeyInEnvironment: boolean
}

/** Returns the address of the tools. */
export function mcpUrl({ baseUrl, toolsets }: ConnectParams): string {
  return `${baseUrl}/mcp${toolsets === null ? '' : `?toolsets=${toolsets}`}`
}

/** Returns the command and arguments that start the bridge, which is `brigade mcp`. */
export function bridgeCommand(params: ConnectParams, place: ConnectPlace): { readonly command: string; readonly args: readonly string[] } {
  const [command = 'brigade', ...before] = place.program
  const toolsets = params.toolsets === null ? [] : ['--toolsets', params.toolsets]
  return { command, args: [...before, 'mcp', '--base-url', params.baseUrl, ...agentFlags(params), ...toolsets] }
}

/** Returns the words of the command that prints the credential for models: a token of the agent, the content of the key file, or BRIGADE_KEY. */
export function credentialCommand(params: ConnectParams, place: ConnectPlace): { readonly command: string; readonly args: readonly string[] } {
  const isWindows = place.platform === 'win32'
  if (params.agent === null && params.keyFile !== null)
    return isWindows ? { command: 'cmd', args: ['/c', 'type', params.keyFile] } : { command: 'cat', args: [params.keyFile] }
  if (params.agent === null) return isWindows ? { command: 'cmd', args: ['/c', 'echo', '%BRIGADE_KEY%'] } : { command: 'printenv', args: ['BRIGADE_KEY'] }
  const [command = 'brigade', ...before] = place.program
  return { command, args: [...before, 'agent', 'token', '--base-url', params.baseUrl, ...agentFlags(params)] }
}

function agentFlags({ agent, keyFile }: ConnectParams): string[] {
  return [...(agent === null ? [] : ['--agent', agent]), ...(keyFile === null ? [] : ['--key-file', keyFile])]
}

/** Returns words as one line for a shell of the platform. */
export function shellLine(words: readonly string[], platform: string): string {
  const quoted = (word: string): string => {
    if (/^[A-Za-z0-9_@%+=:,./\\-]+$/.test(word) && (platform === 'win32' || !word.includes('\\'))) return word
    return platform === 'win32' ? `"${word.replaceAll('"', '\\"')}"` : `'${word.replaceAll("'", "'\\''")}'`
  }
  return words.map(quoted).join(' ')
}

/** How often clients run the token command again. A printed token is valid for at least two minutes, which is longer. */
export const tokenRefreshMs = 60_000
