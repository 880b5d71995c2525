/** The plan for connecting a client, before anything is printed or written. */
import type { SettingEdit } from './connect-edits.ts'

/** Clients that `brigade connect` knows. */
export const clientNames = ['claude-code', 'codex', 'cursor', 'opencode', 'vscode'] as const
export type ClientName = (typeof clientNames)[number]

/** What is to be connected, and how. */
export interface ConnectParams {
  /** Of the gateway, without a slash at the end. */
  readonly baseUrl: string
  /** Of the entries that are written. */
  readonly name: string
  readonly scope: 'project' | 'user'
  /** Whether its own model calls go through the gateway; `default`: only when its settings choose no other provider yet. */
  readonly models: 'yes' | 'default' | 'no'
  readonly tools: boolean
  /** Model that the client starts with. */
  readonly model: string
  /** Calls run as this agent, on tokens that are minted when they are needed. */
  readonly agent: string | null
  /** Tools through `brigade mcp` on this machine in place of HTTP. An agent always needs it. */
  readonly bridge: boolean
  /** File with the key; null: BRIGADE_KEY, and for this program `brigade login` too. */
  readonly keyFile: string | null
  /** For `?toolsets=`; null: all. */
  readonly toolsets: string | null
  /** The client may call the tools without asking a person. */
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
  /** What it is for, for the person. */
  readonly what: string
  readonly edits: readonly SettingEdit[]
  /** Others read the file too, so it must hold nothing that belongs to this machine or person alone. */
  readonly isShared: boolean
}

/** Everything that the person reads about the plan. */
export interface ConnectPlan {
  readonly client: ClientName
  readonly files: readonly PlannedFile[]
  /** Command lines that do the same as a file, where the client has them. */
  readonly commands: readonly string[]
  /** Further steps for the person, one sentence each. */
  readonly notes: readonly string[]
  /** Whether the client reads BRIGADE_KEY from its environment. */
  readonly needsKeyInEnvironment: boolean
}

/** Address of the tools. */
export function mcpUrl({ baseUrl, toolsets }: ConnectParams): string {
  return `${baseUrl}/mcp${toolsets === null ? '' : `?toolsets=${toolsets}`}`
}

/** The words that start the bridge. */
export function bridgeCommand(params: ConnectParams, place: ConnectPlace): { readonly command: string; readonly args: readonly string[] } {
  const [command = 'brigade', ...before] = place.program
  const toolsets = params.toolsets === null ? [] : ['--toolsets', params.toolsets]
  return { command, args: [...before, 'mcp', '--base-url', params.baseUrl, ...agentFlags(params), ...toolsets] }
}

/** The words of the command that prints the credential for models: a token of the agent, the content of the key file, or BRIGADE_KEY. */
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

/** Words as one line for a shell of the platform. */
export function shellLine(words: readonly string[], platform: string): string {
  const quoted = (word: string): string => {
    if (/^[A-Za-z0-9_@%+=:,./\\-]+$/.test(word) && (platform === 'win32' || !word.includes('\\'))) return word
    return platform === 'win32' ? `"${word.replaceAll('"', '\\"')}"` : `'${word.replaceAll("'", "'\\''")}'`
  }
  return words.map(quoted).join(' ')
}

/** How often clients run the token command again: sooner than the two minutes that a printed token is at least valid for. */
export const tokenRefreshMs = 60_000
