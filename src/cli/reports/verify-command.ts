import type { Command } from 'commander'
import { addExamples } from '../client-command.ts'
import { wrongUsage } from '../command-error.ts'

interface VerifyFlags {
  readonly keys?: string
  readonly baseUrl?: string
  readonly keyFile?: string
  readonly tools?: boolean
  readonly json?: boolean
}

/** Adds the command `brigade verify`. Its code is loaded when it runs. */
export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description('check the Ed25519 signature of an attestation, and say what it states; with --tools, check the records of tool calls and approvals')
    .argument('[file]', 'the attestation, as JSON or as report; - for stdin. With --tools: heads that were kept')
    .option('--keys <file or url>', 'the published key set, kept or at its address (default: that of your gateway); with a file nothing is fetched')
    .option('--base-url <url>', 'address of the gateway whose keys count (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)')
    .option('--tools', 'compare the calls and approvals of tools with the signed head of each day, and name the days that differ')
    .option('--key-file <path>', 'with --tools: file with an API key, - for stdin (default: $BRIGADE_KEY, then that of brigade login)')
    .option('--json', 'print JSON')
  addExamples(command, [
    ['brigade verify attestation.json --keys keys.json', 'without a network'],
    ['brigade verify report.md --base-url https://gateway.example.com', 'with the keys that this gateway publishes'],
    ['brigade verify --tools --json > heads.json', 'check the records of tools, and keep their heads'],
    ['brigade verify heads.json --tools --keys keys.json', 'check them against heads and keys that were kept'],
  ])
  command.action(async (file: string | undefined, flags: VerifyFlags) => {
    const { keysOf, verifyFile } = await import('./verify-attestation.ts')
    if (flags.tools === true) return (await import('./verify-tools.ts')).verifyTools(file, flags, () => keysOf(flags))
    if (file === undefined) throw wrongUsage('name the file of an attestation, or --tools.')
    return verifyFile(file, flags)
  })
}
