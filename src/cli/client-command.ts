import { type Command, Option } from 'commander'
import type { GatewayClient } from '../agents/toolkit/gateway-client.ts'
import { type ClientFlags, type ClientSettings, clientSettings, credentialOf } from './client-settings.ts'
import { commandErrorOf } from './command-error.ts'
import { gatewayFetch } from './gateway-fetch.ts'

/** The gateway that a command calls. */
export interface CalledGateway {
  readonly settings: ClientSettings
  readonly client: GatewayClient
}

/** Adds the flags of every client command. Also adds the help text that says where the address and the key come from. */
export function addClientFlags(command: Command): Command {
  return command
    .addOption(new Option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)'))
    .addOption(new Option('--key-file <path>', 'file with an API key or agent token, - for stdin (default: $BRIGADE_KEY, then that of brigade login)'))
    .addOption(new Option('--json', 'print the JSON of the gateway'))
}

/** Adds the examples of the help. Each example is a command line and its purpose. */
export function addExamples(command: Command, examples: readonly (readonly [line: string, what: string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, what]) => `  ${line.padEnd(width)}  # ${what}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

/** Runs `act` with the gateway that the flags name. Errors are thrown as CommandError. Throws CommandError (3) when there is no credential. */
export async function withGateway<T>(flags: ClientFlags, act: (gateway: CalledGateway) => Promise<T>): Promise<T> {
  const settings = clientSettings(flags)
  const credential = credentialOf(settings).reveal()
  const { gatewayClient } = await import('../agents/toolkit/gateway-client.ts')
  try {
    return await act({ settings, client: gatewayClient({ baseUrl: settings.baseUrl, credential, fetch: gatewayFetch(settings.baseUrl) }) })
  } catch (thrown) {
    throw commandErrorOf(thrown, settings)
  }
}
