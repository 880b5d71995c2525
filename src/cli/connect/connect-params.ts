/** The flags of `brigade connect`, and the parameters of a plan that they mean. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConnectError } from '../../connect/connect-error.ts'
import {
  type ClientName,
  type ConnectParams,
  type ConnectPlace,
  type ConnectPlan,
  defaultScope,
  paramShapes,
  serverToolset,
  toolsetNames,
  usualToolsets,
} from '../../connect/connect-plan.ts'
import { addressOf, type ClientSettings, clientSettings } from '../client-settings.ts'
import { wrongUsage } from '../command-error.ts'

export interface ConnectFlags {
  readonly baseUrl?: string
  readonly keyFile?: string
  readonly write?: boolean
  readonly yes?: boolean
  readonly project?: boolean
  readonly user?: boolean
  readonly models?: boolean
  readonly tools?: boolean
  readonly model: string
  readonly agent?: string
  readonly bridge?: boolean
  readonly toolsets?: string
  readonly serverTools?: boolean
  readonly trustTools?: boolean
  readonly name: string
  readonly json?: boolean
}

/** Returns the parameters that the flags mean for a client. Throws CommandError (2). */
export function paramsOf(client: ClientName, flags: ConnectFlags): ConnectParams {
  if (flags.project && flags.user) throw wrongUsage('--project and --user exclude each other.')
  if (!paramShapes.name.test(flags.name)) throw wrongUsage('--name takes letters, digits, - and _, at most 64.')
  if (flags.agent !== undefined && !paramShapes.agent.test(flags.agent)) throw wrongUsage('--agent takes the name or the id of an agent.')
  if (!paramShapes.model.test(flags.model)) throw wrongUsage('--model takes the id of a model; GET /v1/models lists them.')
  if (flags.toolsets !== undefined && !paramShapes.toolsets.test(flags.toolsets))
    throw wrongUsage(`--toolsets takes names with commas between: ${toolsetNames}.`)
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
    toolsets: flags.serverTools === true ? `${flags.toolsets ?? usualToolsets},${serverToolset}` : (flags.toolsets ?? null),
    trustTools: flags.trustTools === true,
  }
}

/** Returns the gateway and the credential that the flags name. */
export function settingsOf({ baseUrl, keyFile }: ConnectFlags): ClientSettings {
  return clientSettings({ ...(baseUrl === undefined ? {} : { baseUrl }), ...(keyFile === undefined ? {} : { keyFile }) })
}

/** Returns the plan. Throws CommandError (2) when the client does not support the request. */
export function supported(plan: () => ConnectPlan): ConnectPlan {
  try {
    return plan()
  } catch (error) {
    throw error instanceof ConnectError ? wrongUsage(error.message, error) : error
  }
}

/** Returns this computer as the place of a plan. */
export async function thisPlace(): Promise<ConnectPlace> {
  const [{ clientFolders }, { existsSync }] = await Promise.all([import('../../platform/config.ts'), import('node:fs')])
  const { home, variables } = clientFolders()
  return { platform: process.platform, home, project: process.cwd(), env: variables, program: ownProgram(), exists: existsSync }
}

/** Returns the paths of the running Node and of brigade.js. Clients start them from any folder, where `npx brigade` would find nothing. */
function ownProgram(): string[] {
  return [process.execPath, fileURLToPath(new URL('../brigade.js', import.meta.url))]
}
