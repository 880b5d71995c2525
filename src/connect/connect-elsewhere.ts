/** The plan for a client on a machine that the gateway does not know: the machine of the person who reads it. Decision 0720 says why. */
import { notesOf, planConnect, snippet } from './connect.ts'
import { type ClientName, type ConnectParams, type ConnectPlace, defaultScope, type Platform, pathsOf, shellLine } from './connect-plan.ts'

/** What a person needs to connect a client. */
export interface ConnectGuide {
  readonly client: ClientName
  /** The command line that merges the settings into the files. */
  readonly command: string
  readonly files: readonly {
    readonly path: string
    readonly what: string
    readonly format: 'jsonc' | 'toml'
    readonly text: string
    readonly shared: boolean
  }[]
  /** Command lines of the client with the same effect as a file. */
  readonly commands: readonly string[]
  readonly notes: readonly string[]
  readonly needs_key_in_environment: boolean
}

/** Returns what `brigade connect` prints for the client. Paths begin with `~` or a variable, and `brigade` is on the PATH. Throws ConnectError. */
export function connectGuide(client: ClientName, params: ConnectParams, platform: Platform): ConnectGuide {
  const place = unknownPlace(platform)
  const plan = planConnect(client, params, place)
  return {
    client,
    command: shellLine(['npx', 'brigade', 'connect', client, ...flagsOf(client, params), '--write'], platform),
    files: plan.files.map(file => ({ path: file.path, what: file.what, format: file.format, text: snippet(file), shared: file.isShared })),
    commands: plan.commands,
    notes: notesOf(plan, params, place),
    needs_key_in_environment: plan.needsKeyInEnvironment,
  }
}

/** Returns the flags of `brigade connect` that mean the parameters. Defaults are left out. */
function flagsOf(client: ClientName, { baseUrl, scope, models, tools, model, agent, bridge, toolsets, trustTools, name }: ConnectParams): string[] {
  const isDefault = models === 'default' && tools
  return [
    '--base-url',
    baseUrl,
    ...(scope === defaultScope(client) ? [] : [`--${scope}`]),
    ...(isDefault || models === 'no' ? [] : ['--models']),
    ...(isDefault || !tools ? [] : ['--tools']),
    ...(model === 'auto' ? [] : ['--model', model]),
    ...(agent === null ? [] : ['--agent', agent]),
    ...(bridge ? ['--bridge'] : []),
    ...(toolsets === null ? [] : ['--toolsets', toolsets]),
    ...(trustTools ? ['--trust-tools'] : []),
    ...(name === 'brigade' ? [] : ['--name', name]),
  ]
}

function unknownPlace(platform: Platform): ConnectPlace {
  const isWindows = platform === 'win32'
  const paths = pathsOf({ platform })
  const home = isWindows ? '%USERPROFILE%' : '~'
  return {
    platform,
    home,
    project: '.',
    env: isWindows ? { APPDATA: '%APPDATA%', XDG_CONFIG_HOME: paths.join(home, '.config') } : {},
    program: ['brigade'],
    exists: () => false,
  }
}
