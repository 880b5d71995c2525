import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Clock } from '../platform/clock.ts'
import { type Config, ConfigError } from '../platform/config.ts'
import type { Db } from '../platform/db/db.ts'
import { openEmbedded } from '../platform/db/embedded/db-embedded.ts'
import { migrate, migrationsFolder, pendingMigrations } from '../platform/db/migrate.ts'
import { openPostgres, placeOf } from '../platform/db/postgres/db-postgres.ts'
import { type DatabasePlace, startFault } from '../platform/db/postgres/start-fault.ts'
import type { Log } from '../platform/observe/log.ts'
import { counted } from '../platform/observe/terminal/counted.ts'
import { noProgress, type Progress } from '../platform/observe/terminal/progress.ts'
import type { Secret } from '../platform/security/secret.ts'
import { newMasterKey, parseMasterKey } from '../platform/security/secrets.ts'

/** The parts that every command of the product needs: the data folder, the key that seals secrets, and the migrated database. */
export interface Foundation {
  readonly dataDir: string
  readonly masterKey: Buffer
  readonly db: Db
}

export interface FoundationOptions {
  /** Is called when the embedded database is lost permanently. */
  readonly onGivenUp?: ((error: Error) => void) | undefined
  /** Shows how long the database takes. */
  readonly progress?: Progress | undefined
}

/**
 * Opens the data folder and the database, migrates the database and loads the master key. Throws a ConfigError when a setting is missing or wrong.
 * The error says what to do.
 */
export async function openFoundation(config: Config, clock: Clock, log: Log, options: FoundationOptions = {}): Promise<Foundation> {
  const { onGivenUp, progress = noProgress } = options
  const dataDir = resolve(config.DATA_DIR)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  if (existsSync(join(dataDir, restoreStaging)))
    throw new ConfigError(`A restore into ${dataDir} was stopped in the middle. Run brigade restore again, with the same backup.`)
  const masterKey = loadMasterKey(config, dataDir)
  const url = config.DATABASE_URL
  progress.now('Opening the database')
  if (url === null) {
    const db = await openEmbedded(join(dataDir, 'db'), { clock, log, ...(onGivenUp ? { onGivenUp } : {}) })
    return { dataDir, masterKey, db: await migrated(db, log, progress) }
  }
  const place = placeIn(url)
  try {
    return { dataDir, masterKey, db: await migrated(await openPostgres(url, { poolMax: config.DB_POOL_MAX, clock, log }), log, progress) }
  } catch (error) {
    const fault = startFault(error, place)
    throw fault === null ? error : new ConfigError(fault, { cause: error })
  }
}

function placeIn(url: Secret): DatabasePlace {
  try {
    return placeOf(url)
  } catch (error) {
    throw new ConfigError('DATABASE_URL must be a URL such as postgres://user:password@host:5432/database. Write special characters of the password as %40.', {
      cause: error,
    })
  }
}

/** Migrates the database. Where somebody sees the progress, one line takes the place of a log line for each migration. */
async function migrated(db: Db, log: Log, progress: Progress): Promise<Db> {
  try {
    const pending = progress.isShown ? await pendingMigrations(db, migrationsFolder) : []
    if (pending.length > 0) progress.now('Migrating the database')
    const { applied } = await migrate(db, migrationsFolder, progress.isShown ? { ...log, info() {} } : log)
    progress.done(applied.length === 0 ? undefined : `Database ready (${counted(applied.length, 'migration')})`)
    return db
  } catch (error) {
    // An open database keeps the process alive, so the command would not exit.
    await db.close()
    throw error
  }
}

/** The working folder of a restore, inside DATA_DIR. While this folder exists, no command may open the installation. */
export const restoreStaging = 'restore-staging'

/** The name of the file with the old master key, next to `master.key`. It exists from a change of the master key until the old key is removed. */
export const formerKeyName = 'master.key.old'

/**
 * Returns the keys that open values which were not sealed with the present key. Such values are older, or come from processes that already have the
 * new key. The keys are MASTER_KEY_OTHER and, if the master key is in a file, `master.key.old` in DATA_DIR. No value is sealed with them. Throws
 * ConfigError for an invalid key.
 */
export function otherMasterKeys(config: Pick<Config, 'MASTER_KEY' | 'MASTER_KEY_OTHER'>, dataDir: string): readonly Buffer[] {
  const keys: Buffer[] = []
  if (config.MASTER_KEY_OTHER !== null) {
    const key = parseMasterKey(config.MASTER_KEY_OTHER.reveal())
    if (key === null) throw new ConfigError('MASTER_KEY_OTHER must be 32 bytes as base64 or hex: the master key before the change, or the one after it.')
    keys.push(key)
  }
  const file = join(resolve(dataDir), formerKeyName)
  if (config.MASTER_KEY === null && existsSync(file)) {
    const key = parseMasterKey(readFileSync(file, 'utf8').trim())
    if (key === null) throw new ConfigError(`${file} does not hold 32 bytes. It is the master key before its change: restore it from a backup.`)
    keys.push(key)
  }
  return keys
}

/**
 * Returns the key from MASTER_KEY. Without MASTER_KEY, an embedded database gets a key on its first start. That key is kept in DATA_DIR, readable
 * only by its owner. Throws ConfigError for a missing or invalid key.
 */
export function loadMasterKey(config: Config, dataDir: string): Buffer {
  if (config.MASTER_KEY !== null) {
    const key = parseMasterKey(config.MASTER_KEY.reveal())
    if (key === null) throw new ConfigError('MASTER_KEY must be 32 bytes as base64 or hex. Make one with: openssl rand -base64 32')
    return key
  }
  if (config.DATABASE_URL !== null)
    throw new ConfigError('DATABASE_URL needs MASTER_KEY: 32 bytes as base64 or hex, the same on every replica. Make one with: openssl rand -base64 32')
  const file = join(dataDir, 'master.key')
  if (!existsSync(file)) {
    writeFileSync(file, `${newMasterKey()}\n`, { mode: 0o600, flag: 'wx' })
    chmodSync(file, 0o600)
  }
  const key = parseMasterKey(readFileSync(file, 'utf8').trim())
  if (key === null) throw new ConfigError(`${file} does not hold 32 bytes. Restore it from a backup: without it, stored credentials cannot be opened.`)
  return key
}
