import type { Command } from 'commander'
import { addExamples } from '../client-command.ts'

interface VerifyFlags {
  readonly keys?: string
  readonly baseUrl?: string
  readonly json?: boolean
}

/** Adds the command `brigade verify`. Its code is loaded when it runs. */
export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description('check the Ed25519 signature of an attestation, and say what it states')
    .argument('<file>', 'the attestation, as JSON or as report; - for stdin')
    .option('--keys <file or url>', 'the published key set, kept or at its address (default: that of your gateway); with a file nothing is fetched')
    .option('--base-url <url>', 'address of the gateway whose keys count (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)')
    .option('--json', 'print JSON')
  addExamples(command, [
    ['brigade verify attestation.json --keys keys.json', 'without a network'],
    ['brigade verify report.md --base-url https://gateway.example.com', 'with the keys that this gateway publishes'],
  ])
  command.action(async (file: string, flags: VerifyFlags) => (await import('./verify-attestation.ts')).verifyFile(file, flags))
}
