import type { Command } from 'commander'
import { printResult } from '../../command-output.ts'

type RunAdmin = (command: { name: string; args: Readonly<Record<string, unknown>> }) => Promise<object>

/** Adds the commands `brigade admin rotate-attestation-key` and `check-attestation`. `runAdmin` runs a command in the process that owns the database. */
export function addComplianceCommands(admin: Command, runAdmin: RunAdmin): void {
  admin
    .command('rotate-attestation-key')
    .description('let a new key sign attestations; the old key still verifies what it signed')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => printResult(await runAdmin({ name: 'rotate-attestation-key', args: {} }), json === true))

  admin
    .command('check-attestation')
    .description('check the HMAC of an attestation, which only this gateway can (brigade verify checks the other signature, for everybody)')
    .argument('<file>', 'the attestation, as JSON or as report; - for stdin')
    .option('--json', 'print JSON')
    .action(async (file: string, { json }: { json?: boolean }) => {
      const [{ contentOf, textOf }, { checkArgsOf }] = await Promise.all([
        import('../../memory/memory-content.ts'),
        import('../../reports/attestation-args.ts'),
      ])
      const args = checkArgsOf(textOf(await contentOf(file, undefined)))
      printResult(await runAdmin({ name: 'check-attestation', args }), json === true)
    })
}
