import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { loadMasterKey } from '../../composition/foundation.ts'
import type { App } from '../../composition/gateway.ts'
import { systemClock } from '../../platform/clock.ts'
import { type Config, ConfigError, loadConfig } from '../../platform/config.ts'
import { openEmbedded } from '../../platform/db/embedded/db-embedded.ts'
import { makeLog } from '../../platform/observe/log.ts'
import { parseMasterKey } from '../../platform/security/secrets.ts'
import { type BackupReport, backUp, restore } from '../backup.ts'
import { OperationError } from '../operation-error.ts'
import { argsOf } from './admin-args.ts'
import { type AdminCommand, askAdmin } from './admin-socket.ts'
import { asOperator } from './operator-act.ts'

const backupArgs = z.object({ to: z.string().min(1), withMasterKey: z.boolean() })

/** Runs the backup command in the process that owns the database, and writes an audit line. Returns null for another command. */
export function backupCommand(app: App, command: AdminCommand): Promise<object> | null {
  if (command.name !== 'backup') return null
  const args = argsOf(backupArgs, command)
  return asOperator(app.audit, { act: 'backUp', orgId: null, target: args.to }, () => app.backUp(args))
}

/**
 * Backs up the embedded installation in DATA_DIR. The running gateway makes the backup, or this process when no gateway runs. Throws BackupError.
 * Throws OperationError on PostgreSQL, and when the folder has no database.
 */
export async function runBackup(folder: string, withMasterKey: boolean, config: Config = loadConfig()): Promise<BackupReport> {
  if (config.DATABASE_URL !== null)
    throw new OperationError(
      'this installation is on PostgreSQL: back it up with pg_dump, each DATA_DIR/journal by copying it, and buckets by their own means (docs/operate/backup-and-restore.md). For an embedded database leave DATABASE_URL out.',
    )
  const dataDir = resolve(config.DATA_DIR)
  const to = resolve(folder)
  const asked = await askAdmin(dataDir, { name: 'backup', args: { to, withMasterKey } })
  if (asked !== null) return asked.result as BackupReport
  if (!existsSync(join(dataDir, 'db'))) throw new OperationError(`there is no embedded database in ${dataDir}. Set DATA_DIR to the folder of the gateway.`)
  const masterKey = loadMasterKey(config, dataDir)
  const db = await openEmbedded(join(dataDir, 'db'), { clock: systemClock, log: makeLog('error') })
  try {
    return await backUp({ db, dataDir, masterKey, clock: systemClock }, { to, withMasterKey })
  } finally {
    await db.close()
  }
}

/** Restores a backup into DATA_DIR. Throws BackupError. Throws OperationError on PostgreSQL. */
export async function runRestore(folder: string, config: Config = loadConfig()): Promise<BackupReport & { readonly dataDir: string }> {
  if (config.DATABASE_URL !== null)
    throw new OperationError(
      'this installation is on PostgreSQL: restore it with pg_restore (docs/operate/backup-and-restore.md). For an embedded database leave DATABASE_URL out.',
    )
  const dataDir = resolve(config.DATA_DIR)
  const givenKey = config.MASTER_KEY === null ? null : parseMasterKey(config.MASTER_KEY.reveal())
  if (config.MASTER_KEY !== null && givenKey === null) throw new ConfigError('MASTER_KEY must be 32 bytes as base64 or hex.')
  return { ...(await restore(folder, { dataDir, givenKey })), dataDir }
}
