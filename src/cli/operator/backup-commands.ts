import type { Command } from 'commander'
import type { BackupReport } from '../../operations/backup.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { commandProgress, withProgress } from './command-progress.ts'

const backupHelp = `
Works while the gateway runs and while it does not. The master key is not inside: keep it in another place, or add --with-master-key
and keep the backup as carefully as the key. PostgreSQL and buckets are backed up by their own means: docs/operate/backup-and-restore.md.

Examples:
  brigade backup /backups/brigade-$(date +%F)
  DATA_DIR=/srv/brigade brigade restore /backups/brigade-2026-11-22`

/** Adds `brigade backup` and `brigade restore` for the embedded installation in DATA_DIR. Their code is loaded when they run. */
export function addBackupCommands(program: Command): void {
  program
    .command('backup')
    .description('copy the embedded database, the usage journal and the memory folder of DATA_DIR, as of one moment')
    .argument('<folder>', 'a new folder for the backup')
    .option('--with-master-key', 'put the master key into the backup too')
    .option('--json', 'print JSON')
    .addHelpText('after', backupHelp)
    .action(async (folder: string, { json, withMasterKey }: { json?: boolean; withMasterKey?: boolean }) => {
      const report = await withProgress(commandProgress(), `Copying the installation to ${plain(folder)}`, async () =>
        (await import('../../operations/admin/backup.ts')).runBackup(folder, withMasterKey === true),
      )
      if (json === true) return printJson(report)
      printLine(`backed up to ${report.folder}: ${sizeOf(report)}, as of ${report.made_at}`)
      printLine(
        report.with_master_key
          ? 'the master key is inside: anybody who has the backup can open its sealed values'
          : `the master key ${report.master_key_id} is not inside: keep a copy of it in another place, or sealed values are lost with it`,
      )
    })
  program
    .command('restore')
    .description('put a backup into DATA_DIR, which must not hold an installation')
    .argument('<folder>', 'what brigade backup made')
    .option('--json', 'print JSON')
    .action(async (folder: string, { json }: { json?: boolean }) => {
      const { dataDir, ...report } = await withProgress(commandProgress(), `Checking and restoring ${plain(folder)}`, async () =>
        (await import('../../operations/admin/backup.ts')).runRestore(folder),
      )
      if (json === true) return printJson({ ...report, data_dir: dataDir })
      printLine(`restored into ${dataDir}: ${sizeOf(report)}, as of ${report.made_at}`)
      printLine(
        'what was revoked after that moment is valid again: start the gateway, run brigade doctor, and revoke it again (docs/operate/backup-and-restore.md)',
      )
    })
}

function sizeOf({ files, bytes }: BackupReport): string {
  return `${files} files, ${(bytes / 1024 / 1024).toFixed(1)} MB`
}
