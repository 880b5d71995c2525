/** Finds the coding clients of this computer: by their programs on the PATH, and by the settings that they have written. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { planConnect } from '../../connect/connect.ts'
import { type ClientName, type ConnectParams, type ConnectPlace, clientNames } from '../../connect/connect-plan.ts'

/** Names of the clients for people. */
export const clientTitles: Readonly<Record<ClientName, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  cursor: 'Cursor',
  opencode: 'opencode',
  vscode: 'VS Code',
}

const programNames: Readonly<Record<ClientName, readonly string[]>> = {
  'claude-code': ['claude'],
  codex: ['codex'],
  cursor: ['cursor', 'cursor-agent'],
  opencode: ['opencode'],
  vscode: ['code'],
}

/** A client of this computer. */
export interface FoundClient {
  readonly client: ClientName
  /** The path of its program. Null when only its settings are there. */
  readonly program: string | null
  /** A file or folder of its settings. Null when it has none yet. */
  readonly settings: string | null
}

/** Where the shell looks for programs. */
export interface ProgramPlaces {
  readonly folders: readonly string[]
  readonly endings: readonly string[]
}

/** Returns the clients that have a program on the PATH or settings of the user, in the order of `clientNames`. */
export function findClients(params: (client: ClientName) => ConnectParams, place: ConnectPlace, places: ProgramPlaces): FoundClient[] {
  return clientNames
    .map(client => ({ client, program: programOf(client, places), settings: settingsOf(client, params(client), place) }))
    .filter(({ program, settings }) => program !== null || settings !== null)
}

function programOf(client: ClientName, { folders, endings }: ProgramPlaces): string | null {
  for (const name of programNames[client])
    for (const folder of folders)
      for (const ending of endings) {
        const path = join(folder, name + ending)
        if (isProgram(path)) return path
      }
  return null
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Returns the first file of the plan that exists, or the folder of one. The home folder and the folder of the project say nothing about a client. */
function settingsOf(client: ClientName, params: ConnectParams, place: ConnectPlace): string | null {
  for (const { path } of planConnect(client, { ...params, models: 'default', tools: true, trustTools: false, scope: 'user' }, place).files) {
    if (existsSync(path)) return path
    const folder = dirname(path)
    if (folder !== place.home && folder !== place.project && existsSync(folder)) return folder
  }
  return null
}
