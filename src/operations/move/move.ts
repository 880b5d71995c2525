/**
 * Moves an embedded installation to PostgreSQL and a bucket. The source is only read. Its database and journals are copied to a work folder. The
 * journals are settled in that copy, and the copy is moved. One transaction writes all rows, so the target contains everything or nothing. Decision
 * 0356 gives the reasons.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { loadMasterKey } from '../../composition/foundation.ts'
import { usageAccount } from '../../composition/usage-account.ts'
import { createLimits } from '../../gateway/limits/engine/limits.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Config, ConfigError } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import { ControlLog } from '../../platform/db/db-control-log.ts'
import { type EmbeddedDb, openEmbedded } from '../../platform/db/embedded/db-embedded.ts'
import { lockFolder } from '../../platform/db/embedded/folder-lock.ts'
import { migrate, migrationsFolder } from '../../platform/db/migrate.ts'
import { openPostgres } from '../../platform/db/postgres/db-postgres.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { keyIdOf } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { copyTree } from '../backup-files.ts'
import { MasterKeys } from '../master-keys.ts'
import { type BucketPlace, folderOrgs, type MovedMemory, moveMemory, placeMemory } from './memory.ts'
import { isUsedStatement, openProcesses } from './move-queries.ts'
import { MoveError, moveRows, type TableProof } from './rows.ts'

export interface MoveOptions {
  /** DATA_DIR of the embedded installation. */
  readonly from: string
  /** URL of an empty PostgreSQL database. */
  readonly to: Secret
  /** The bucket for memory that is in folders. When null, this memory stays in folders, and the operator copies the folders by hand. */
  readonly bucket: BucketPlace | null
  /** When true, the installation is moved even if memory is in folders and no bucket is given. */
  readonly keepsFolders: boolean
}

export interface MoveDeps {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly progress: (line: string) => void
}

/** What was moved, with a proof for each table and store. */
export interface MoveReport {
  readonly tables: readonly TableProof[]
  readonly memory: readonly MovedMemory[]
  /** Organisations whose memory stays in a folder. */
  readonly foldersLeft: readonly number[]
  /** Where the master key is that the new gateway needs. */
  readonly masterKeyFrom: string
  readonly masterKeyId: string
  readonly rows: number
}

/** Moves the installation. Throws MoveError or ConfigError when that is not possible. The error says what to do, and nothing is committed. */
export async function moveInstallation(options: MoveOptions, deps: MoveDeps): Promise<MoveReport> {
  const from = resolve(options.from)
  if (!existsSync(join(from, 'db', 'postgres')))
    throw new MoveError(`There is no embedded database in ${from}. Give the DATA_DIR of the gateway: --from <folder>.`)
  const masterKey = sourceKey(deps.config, from)
  const lock = await lockFolder(join(from, 'db')).catch((error: unknown) => {
    if (error instanceof ConfigError)
      throw new MoveError(`A gateway runs on ${from}. Stop it for the time of the move: what it writes meanwhile would not arrive.`, { cause: error })
    throw error
  })
  const work = await workFolder(from)
  try {
    deps.progress(`copying the database and the journals of ${from} aside`)
    await copyTree(join(from, 'db', 'postgres'), join(work, 'db', 'postgres'))
    await copyTree(join(from, 'journal'), join(work, 'journal'))
    const source = await openEmbedded(join(work, 'db'), deps)
    try {
      await settle(source, work, deps)
      await openSealed({ ...deps, db: source, dataDir: from, masterKey: masterKey.key })
      return await moveFrom(source, masterKey, from, options, deps)
    } finally {
      await source.close()
    }
  } finally {
    await rm(work, { recursive: true, force: true })
    await lock.release()
  }
}

async function moveFrom(source: EmbeddedDb, masterKey: { key: Buffer; from: string }, from: string, options: MoveOptions, deps: MoveDeps): Promise<MoveReport> {
  const { config, clock, ids, log, progress } = deps
  const orgs = await folderOrgs(source)
  if (orgs.length > 0 && options.bucket === null && !options.keepsFolders)
    throw new MoveError(
      `The memory of ${orgs.length === 1 ? 'organisation' : 'organisations'} ${orgs.join(', ')} is in a folder. Give a bucket for it (--bucket, --endpoint, --access-key, --secret-key-file), or --keep-folders if every new process will have ${join(from, 'memory')} in its DATA_DIR and FOLDER_STORE=on.`,
    )
  const target = await openPostgres(options.to, { poolMax: 2, isPatient: true, clock, log })
  try {
    await migrate(target, migrationsFolder, log)
    await refuseUsed(target)
    const memory = options.bucket === null ? [] : await moveMemory(orgs, options.bucket, { config, clock, ids, dataDir: from, progress })
    progress('moving rows')
    const tables = await source.tx(reading =>
      target.tx(async writing => {
        const proofs = await moveRows(reading, writing, progress)
        if (options.bucket !== null) await placeMemory(writing, memory, options.bucket, masterKey.key)
        return proofs
      }),
    )
    return {
      tables,
      memory: memory.map(({ etags: _etags, capabilities: _found, ...told }) => told),
      foldersLeft: options.bucket === null ? orgs : [],
      masterKeyFrom: masterKey.from,
      masterKeyId: keyIdOf(masterKey.key),
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    }
  } finally {
    await target.close()
  }
}

/**
 * Throws MoveError when the target is in use. This check comes before objects are copied to a bucket. The transaction checks every table
 * again under its locks.
 */
async function refuseUsed(target: Db): Promise<void> {
  const { isUsed } = await target.one(isUsedStatement)
  if (isUsed)
    throw new MoveError('The target is not empty: a gateway has run on it, or the data were moved before. Make a new database (createdb) and name that.')
}

/** Returns the key in MASTER_KEY or in the file. It never makes a new key. */
function sourceKey(config: Config, dataDir: string): { key: Buffer; from: string } {
  const file = join(dataDir, 'master.key')
  if (config.MASTER_KEY === null && !existsSync(file))
    throw new MoveError(`There is no master key: ${file} is missing and MASTER_KEY is not set. Without it nothing that is sealed can be used on the new side.`)
  return { key: loadMasterKey({ ...config, DATABASE_URL: null }, dataDir), from: config.MASTER_KEY === null ? file : 'MASTER_KEY' }
}

/**
 * Makes a work folder next to the data folder, where there is usually room for a copy. Deletes a work folder that a killed move has left there. When
 * it cannot make the folder, it uses the system's temporary folder.
 */
async function workFolder(from: string): Promise<string> {
  const beside = join(dirname(from), `.brigade-move-${basename(from)}`)
  try {
    await rm(beside, { recursive: true, force: true })
    await mkdir(beside, { mode: 0o700 })
    return beside
  } catch {
    return await mkdtemp(join(tmpdir(), 'brigade-move-'))
  }
}

/** Migrates the copy to this version's schema and settles its journals. Afterwards the tables contain all charges, and all leases are returned. */
async function settle(copy: EmbeddedDb, work: string, { config, clock, ids, log, progress }: MoveDeps): Promise<void> {
  await migrate(copy, migrationsFolder, log)
  progress('settling what the journals hold')
  const controlLog = new ControlLog({ db: copy, clock, log, pollMs: config.CONTROL_POLL_MS })
  const limits = await createLimits({ db: copy, config, clock, ids, log, dataDir: work, controlLog, ...usageAccount(ids) })
  await limits.stop()
  const open = await copy.many(openProcesses)
  for (const { id, journal } of open)
    progress(`process ${id} was never closed and its journal is not here (it was in ${journal}): what it holds stays counted; see brigade doctor`)
}

/** Checks that the key opens the sealed values. Seals values under the old key again in the copy, so that the new installation needs only one key. */
async function openSealed(deps: { config: Config; db: Db; dataDir: string; masterKey: Buffer; progress: (line: string) => void }): Promise<void> {
  const keys = new MasterKeys(deps)
  const { current, inUse } = await keys.status()
  const isOpened = inUse.length === 0 || inUse.some(({ state }) => state !== 'unknown')
  if (!isOpened)
    throw new MoveError(
      `The master key ${current} opens nothing of what is sealed here; the values are under ${inUse.map(({ keyId }) => keyId).join(', ')}. Set MASTER_KEY to that key, or put it into master.key.`,
    )
  const unopened = (await keys.reseal()).reduce((sum, values) => sum + values.unopened, 0)
  if (unopened > 0) deps.progress(`${unopened} sealed values open with no key that is here; they are moved as they are`)
}
