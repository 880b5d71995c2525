import type { Command } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import type { PersonFlags } from './person.ts'

/** Adds the flag that names the person, and the help text that says who that is. */
export function addPersonFlags(command: Command): Command {
  return command
    .option('--email <email>', 'the person to act as, on the computer of the gateway (default: owner@localhost)')
    .addHelpText(
      'after',
      '\nThis acts as a person: the one of brigade login --link, or on the computer of the gateway the one of --email. An API key is not enough.',
    )
}

/** Runs the command as a person. The code is loaded when it runs. */
export async function personal(flags: PersonFlags, reads: boolean, act: (client: GatewayClient) => Promise<void>): Promise<void> {
  return (await import('./person.ts')).asPerson(flags, reads, act)
}
