import type { Command } from 'commander'
import type { MoveReport } from '../../operations/move/move.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { commandProgress, noteLine, withProgress } from './command-progress.ts'
import type { MoveFlags } from './migrate-data-flags.ts'

const help = `
Stop the gateway first. The source is only read; the target is a new, empty database that has everything afterwards, or nothing when
something failed: then run it again. Every table is compared by rows, sums and a SHA-256 over its rows, every object by its bytes.

Example:
  createdb brigade
  DATABASE_URL=postgres://brigade:…@db.example.com/brigade brigade migrate-data --from /srv/brigade \\
    --bucket brigade-memory --endpoint https://s3.eu-central-1.amazonaws.com --region eu-central-1 \\
    --access-key AKIA… --secret-key-file /run/secrets/s3`

/** Adds `brigade migrate-data`, which moves an embedded installation to PostgreSQL and a bucket. Its code is loaded when it runs. */
export function addMigrateDataCommand(program: Command): void {
  program
    .command('migrate-data')
    .description('move an embedded installation to PostgreSQL, and its memory folder to an S3 bucket')
    .option('--from <folder>', 'DATA_DIR of the embedded installation (default: DATA_DIR)')
    .option('--to <url>', 'PostgreSQL database, new and empty (default: DATABASE_URL)')
    .option('--bucket <name>', 'bucket for memory that is in folders')
    .option('--endpoint <url>', 'S3 endpoint of the bucket; a private one must be in OUTBOUND_ALLOW, here and on the new gateway')
    .option('--region <region>', 'region of the bucket', 'us-east-1')
    .option('--access-key <id>', 'access key id for the bucket')
    .option('--secret-key-file <file>', 'file with the secret key for the bucket')
    .option('--keep-folders', 'leave memory in folders; the new processes share them (FOLDER_STORE=on)')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (flags: MoveFlags) => {
      const progress = commandProgress()
      const report = await withProgress(progress, 'Moving the installation', async () =>
        (await import('./migrate-data.ts')).runMove(flags, line => noteLine(progress, plain(line))),
      )
      if (flags.json === true) printJson(report)
      else for (const line of linesOf(report)) printLine(line)
    })
}

function linesOf({ tables, memory, rows, foldersLeft, masterKeyFrom, masterKeyId }: MoveReport): string[] {
  const filled = tables.filter(table => table.rows > 0)
  return [
    ...filled.map(table => `${table.table}: ${table.rows} rows, sha256 ${table.sha256.slice(0, 16)}${sumsOf(table.sums)}`),
    ...memory.map(({ orgId, objects, bytes, sha256 }) => `memory of organisation ${orgId}: ${objects} objects, ${bytes} bytes, sha256 ${sha256.slice(0, 16)}`),
    `moved and compared: ${rows} rows of ${filled.length} tables, ${memory.reduce((sum, { objects }) => sum + objects, 0)} objects. The source is as it was.`,
    `Start the new gateway with DATABASE_URL, and as MASTER_KEY the key ${masterKeyId} from ${masterKeyFrom}${foldersLeft.length > 0 ? ', FOLDER_STORE=on and the folder memory in its DATA_DIR' : ''}; then run brigade doctor.`,
    'Do not start the old one again: keys and budgets would count in two places.',
  ]
}

function sumsOf(sums: Readonly<Record<string, string>>): string {
  const told = Object.entries(sums).filter(([, sum]) => sum !== '0')
  return told.length === 0 ? '' : `; ${told.map(([column, sum]) => `${column} ${sum}`).join(', ')}`
}
