/** What `brigade connect` will print and write for a client. The command makes the whole plan before it prints or writes anything. */
import { type PlatformPath, posix, win32 } from 'node:path'
import type { SettingEdit } from './connect-edits.ts'

/** Clients that `brigade connect` knows. */
export const clientNames = ['claude-code', 'codex', 'cursor', 'opencode', 'vscode'] as const
export type ClientName = (typeof clientNames)[number]

/** Systems on which clients run, as Node names them. */
export const platforms = ['linux', 'darwin', 'win32'] as const
export type Platform = (typeof platforms)[number]

/** The shapes of the parameters that people type. */
export const paramShapes = {
  name: /^[A-Za-z0-9_-]{1,64}$/,
  agent: /^[^\p{Cc}]{1,200}$/u,
  model: /^[^\s\p{Cc}]{1,200}$/u,
  toolsets: /^[a-z0-9_:,-]+$/,
} as const

/** Returns where a client keeps its settings, unless its flags say something else. Of VS Code, only the project has a file that is the same on all machines. */
export const defaultScope = (client: ClientName): 'project' | 'user' => (client === 'vscode' ? 'project' : 'user')

/** What `--toolsets` accepts, for messages and help texts. */
export const toolsetNames = 'core,memory,usage,images,tools,tools:<server>'

/** The sets of a client that does not choose. Approved tools of MCP servers are not among them. */
export const usualToolsets = 'core,memory,usage'

/** The set of the approved tools of all MCP servers of the organisation. */
export const serverToolset = 'tools'

/** The parameters of a connection. */
export interface ConnectParams {
  /** The address of the gateway, without a slash at the end. */
  readonly baseUrl: string
  /** The name of the entries that are written. */
  readonly name: string
  readonly scope: 'project' | 'user'
  /** Whether the client's own model calls go through the gateway. With `default`, they do so unless its settings already choose another provider. */
  readonly models: 'yes' | 'default' | 'no'
  readonly tools: boolean
  /** The model with which the client starts. */
  readonly model: string
  /** The agent that makes the calls. Its tokens are minted when they are needed. */
  readonly agent: string | null
  /** Whether the tools run over `brigade mcp` on this machine instead of HTTP. With an agent, they always do. */
  readonly bridge: boolean
  /** The file with the key. When null, the key is in BRIGADE_KEY. This program then also accepts the key of `brigade login`. */
  readonly keyFile: string | null
  /** The value of `?toolsets=`. Null means all toolsets. */
  readonly toolsets: string | null
  /** Whether the client may call the tools without asking the person. */
  readonly trustTools: boolean
}

/** The machine on which the client runs. */
export interface ConnectPlace {
  readonly platform: string
  readonly home: string
  /** The folder of the project. */
  readonly project: string
  /** Environment variables that change where the clients' files are. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The command words that start this program: node and the file of the program. */
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
  /** Whether other people read the file too. It must then contain nothing that belongs only to this machine or person. */
  readonly isShared: boolean
}

/** Everything that the person reads about the plan. */
export interface ConnectPlan {
  readonly client: ClientName
  readonly files: readonly PlannedFile[]
  /** Command lines that have the same effect as a file. Only some clients have such commands. */
  readonly commands: readonly string[]
  /** Further steps for the person, one sentence each. */
  readonly notes: readonly string[]
  /** Whether the client reads BRIGADE_KEY from its environment. */
  readonly needsKeyInEnvironment: boolean
}

/** Returns how the machine of the client writes paths. It may be another machine than this one. */
export function pathsOf({ platform }: Pick<ConnectPlace, 'platform'>): PlatformPath {
  return platform === 'win32' ? win32 : posix
}

/** Returns the URL of the MCP server. */
export function mcpUrl({ baseUrl, toolsets }: ConnectParams): string {
  return `${baseUrl}/mcp${toolsets === null ? '' : `?toolsets=${toolsets}`}`
}

/** Returns the command and arguments that start `brigade mcp`, the bridge from stdin and stdout to the gateway. */
export function bridgeCommand(params: ConnectParams, place: ConnectPlace): { readonly command: string; readonly args: readonly string[] } {
  const [command = 'brigade', ...before] = place.program
  const toolsets = params.toolsets === null ? [] : ['--toolsets', params.toolsets]
  return { command, args: [...before, 'mcp', '--base-url', params.baseUrl, ...agentFlags(params), ...toolsets] }
}

/** Returns the command that prints the credential for models. The credential is a token of the agent, the content of the key file, or BRIGADE_KEY. */
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

/** Returns the words as one command line for a shell of the platform. */
export function shellLine(words: readonly string[], platform: string): string {
  const quoted = (word: string): string => {
    if (/^[A-Za-z0-9_@%+=:,./\\-]+$/.test(word) && (platform === 'win32' || !word.includes('\\'))) return word
    return platform === 'win32' ? `"${word.replaceAll('"', '\\"')}"` : `'${word.replaceAll("'", "'\\''")}'`
  }
  return words.map(quoted).join(' ')
}

/** How often clients run the token command again. A printed token is valid for at least two minutes, so it never expires between two runs. */
export const tokenRefreshMs = 60_000
