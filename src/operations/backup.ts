/**
 * Backup and restore of an embedded installation. A backup is one folder with the database, the usage journal and the memory folder as they were at
 * one moment. Decision 0357 gives the reasons.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { z } from 'zod'
import { formerKeyName, restoreStaging } from '../composition/foundation.ts'
import type { Clock } from '../platform/clock.ts'
import type { EmbeddedDb } from '../platform/db/embedded/db-embedded.ts'
import { keyIdOf, parseMasterKey } from '../platform/security/secrets.ts'
import { version } from '../version.ts'
import { type BackupFile, copyTree, damageOf, sumsOf, treeOf } from './backup-files.ts'

/** The file in a backup that lists its files. */
const manifestName = 'backup.json'
const stagingName = 'backup-staging'
/** The parts of a backup, with their places in DATA_DIR. */
const parts = [
  { name: 'postgres', place: join('db', 'postgres') },
  { name: 'journal', place: 'journal' },
  { name: 'memory', place: 'memory' },
] as const

const manifestShape = z.object({
  format: z.literal(1),
  version: z.string(),
  made_at: z.string(),
  /** Id of the master key under which the values in the backup are sealed. */
  master_key_id: z.string(),
  folders: z.array(z.string()),
  files: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
})
type Manifest = z.output<typeof manifestShape>

/** The result of a backup or a restore. */
export interface BackupReport {
  readonly folder: string
  readonly files: number
  readonly bytes: number
  readonly made_at: string
  readonly master_key_id: string
  /** Whether the backup contains the master key. */
  readonly with_master_key: boolean
}

export interface BackupSource {
  readonly db: EmbeddedDb
  readonly dataDir: string
  readonly masterKey: Buffer
  readonly clock: Clock
}

/** The error when a backup or restore is not possible. The message says what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

const underWay = new Set<string>()

/**
 * Copies the running installation as it is at one moment. Queries wait while the database files are copied, and calls continue. The copy contains
 * everything that was acknowledged before. The target folder appears only when it is complete. Throws BackupError.
 */
export async function backUp(source: BackupSource, { to, withMasterKey }: { readonly to: string; readonly withMasterKey: boolean }): Promise<BackupReport> {
  const target = resolve(to)
  const dataDir = resolve(source.dataDir)
  if (`${target}${sep}`.startsWith(`${dataDir}${sep}`)) throw new BackupError(`${target} is in DATA_DIR, which is the folder to back up. Choose another place.`)
  if (existsSync(target) && (!isFolder(target) || readdirSync(target).length > 0))
    throw new BackupError(`There is something at ${target} already. Choose a name that is free.`)
  if (underWay.has(dataDir)) throw new BackupError('Another backup is being made. Try again when it is done.')
  underWay.add(dataDir)
  const staging = join(dataDir, stagingName)
  const part = `${target}.part`
  try {
    await rm(staging, { recursive: true, force: true })
    await rm(part, { recursive: true, force: true })
    const madeAtMs = await source.db.quietly(() => stage(dataDir, staging).then(() => source.clock.nowMs()))
    await copyTree(staging, part)
    if (withMasterKey) await writeKeys(source, part)
    const manifest = await manifestOf(source, part, madeAtMs)
    await writeFile(join(part, manifestName), `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600, flush: true })
    await rm(target, { recursive: true, force: true })
    await rename(part, target)
    return reportOf(target, manifest)
  } finally {
    await rm(staging, { recursive: true, force: true })
    await rm(part, { recursive: true, force: true })
    underWay.delete(dataDir)
  }
}

/**
 * Copies files that are changed in place, and makes hard links to files that are only replaced. No query runs during this time, so no journal segment
 * is deleted and no memory write begins.
 */
async function stage(dataDir: string, staging: string): Promise<void> {
  for (const { name, place } of parts) await copyTree(join(dataDir, place), join(staging, name), { share: name === 'memory', mayVanish: name !== 'postgres' })
}

async function writeKeys({ masterKey, dataDir }: BackupSource, folder: string): Promise<void> {
  const options = { mode: 0o600 }
  await writeFile(join(folder, 'master.key'), `${masterKey.toString('base64')}\n`, options)
  const former = join(dataDir, formerKeyName)
  if (existsSync(former)) await writeFile(join(folder, formerKeyName), readFileSync(former), options)
}

async function manifestOf({ masterKey }: BackupSource, folder: string, madeAtMs: number): Promise<Manifest> {
  const files: BackupFile[] = await sumsOf(folder)
  const { folders } = await treeOf(folder)
  return { format: 1, version, made_at: new Date(madeAtMs).toISOString(), master_key_id: keyIdOf(masterKey), folders: [...folders], files }
}

function reportOf(folder: string, { files, made_at, master_key_id }: Manifest): BackupReport {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return { folder, files: files.length, bytes, made_at, master_key_id, with_master_key: files.some(file => file.path === 'master.key') }
}

/**
 * Restores a backup into a data folder that has no installation. Checks every file first. `givenKey` is the key in the setting MASTER_KEY. Without it
 * and without a key in the backup, the folder must already contain `master.key`. When a restore is interrupted, the next run starts again. No gateway
 * starts on the folder until a restore has finished. Throws BackupError.
 */
export async function restore(from: string, { dataDir, givenKey }: { readonly dataDir: string; readonly givenKey: Buffer | null }): Promise<BackupReport> {
  const source = resolve(from)
  const target = resolve(dataDir)
  const manifest = manifestIn(source)
  const staging = join(target, restoreStaging)
  // After an interrupted restore, that restore made the folders in the target, so they may be deleted.
  const isAgain = existsSync(staging)
  if (!isAgain) refuseFull(target)
  checkKey(source, target, manifest, givenKey)
  const damage = await damageOf(source, manifest.files)
  if (damage !== null) throw new BackupError(`The backup ${source} is damaged: ${damage}. Take another one.`)
  await mkdir(target, { recursive: true, mode: 0o700 })
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging, { mode: 0o700 })
  if (isAgain) for (const name of ['db', 'journal', 'memory']) await rm(join(target, name), { recursive: true, force: true })
  for (const folder of manifest.folders) await mkdir(join(staging, folder), { recursive: true, mode: 0o700 })
  for (const { name } of parts) await copyTree(join(source, name), join(staging, name))
  for (const name of ['master.key', formerKeyName])
    if (existsSync(join(source, name)) && !existsSync(join(target, name)))
      await writeFile(join(target, name), readFileSync(join(source, name)), { mode: 0o600, flush: true })
  await mkdir(join(target, 'db'), { recursive: true, mode: 0o700 })
  for (const { name, place } of parts) await rename(join(staging, name), join(target, place))
  await rm(staging, { recursive: true, force: true })
  return reportOf(source, manifest)
}

function manifestIn(folder: string): Manifest {
  const file = join(folder, manifestName)
  if (!existsSync(file)) throw new BackupError(`${folder} is no backup: it has no ${manifestName}. Give the folder that brigade backup made.`)
  let text: unknown
  try {
    text = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new BackupError(`${file} is damaged. Take another backup.`, { cause })
  }
  const parsed = manifestShape.safeParse(text)
  if (!parsed.success) throw new BackupError(`${file} is of another format than this version reads (${version}). Restore with the version that made it.`)
  return parsed.data
}

function refuseFull(dataDir: string): void {
  const there = ['db', 'journal', 'memory'].filter(name => existsSync(join(dataDir, name)))
  if (there.length === 0) return
  throw new BackupError(
    `${dataDir} holds an installation (${there.join(', ')}). Stop its gateway and move these folders away, or give another DATA_DIR; master.key may stay.`,
  )
}

/**
 * Throws BackupError unless the master key can open the sealed values of the backup. Without this check, the restore would seem to succeed, but saved
 * keys would not work.
 */
function checkKey(source: string, dataDir: string, { master_key_id: wanted }: Manifest, givenKey: Buffer | null): void {
  const places = [
    { from: 'MASTER_KEY', key: givenKey },
    { from: join(dataDir, 'master.key'), key: keyIn(join(dataDir, 'master.key')) },
    { from: join(source, 'master.key'), key: keyIn(join(source, 'master.key')) },
  ]
  // A gateway on this folder uses the first key in this list that exists.
  const found = places.find(({ key }) => key !== null)
  if (found?.key === undefined || found.key === null)
    throw new BackupError(
      `The backup holds no master key. Put the one with the id ${wanted} into ${join(dataDir, 'master.key')}, or set MASTER_KEY: without it, nothing sealed in the backup can be opened.`,
    )
  if (keyIdOf(found.key) !== wanted)
    throw new BackupError(`The master key of ${found.from} has the id ${keyIdOf(found.key)}; the backup is sealed with ${wanted}. Put that one in its place.`)
}

function keyIn(file: string): Buffer | null {
  return existsSync(file) ? parseMasterKey(readFileSync(file, 'utf8').trim()) : null
}

function isFolder(path: string): boolean {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}
