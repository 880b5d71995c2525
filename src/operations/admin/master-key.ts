/** The operator's commands that change the master key. */
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Foundation, formerKeyName, loadMasterKey, openFoundation } from '../../composition/foundation.ts'
import type { App } from '../../composition/gateway.ts'
import { systemClock } from '../../platform/clock.ts'
import { type Config, loadConfig } from '../../platform/config.ts'
import { makeLog } from '../../platform/observe/log.ts'
import { newMasterKey } from '../../platform/security/secrets.ts'
import { type MasterKeyStatus, MasterKeys } from '../master-keys.ts'
import { OperationError } from '../operation-error.ts'
import type { AdminCommand } from './admin-socket.ts'
import { asOperator } from './operator-act.ts'

/** The result of every `brigade master-key` command. */
export interface MasterKeyReport extends MasterKeyStatus {
  /** Number of resealed values by column. Present only after a reseal. */
  readonly resealed?: readonly { readonly where: string; readonly values: number }[]
  /** Number of values that no known key can open. Present only after a reseal. */
  readonly unopened?: number
  /** A sentence that says what to do next. Null when there is nothing to do. */
  readonly next: string | null
}

/** Runs the commands that must run in the process with the database. Returns null for another command. */
export function masterKeyCommand(app: App, { name }: AdminCommand): Promise<object> | null {
  if (name === 'master-key-status') return app.masterKeys.status().then(status => ({ ...status, next: nextOf(status) }))
  if (name === 'master-key-reseal') return asOperator(app.audit, { act: 'resealMasterKey', orgId: null, target: null }, () => reseal(app.masterKeys))
  return null
}

/**
 * Makes a new `master.key`, keeps the old key as `master.key.old`, and seals all values again. When this is interrupted, the next run continues with
 * the same new key. An interruption is safe, because each file is always complete and both keys open values. Throws ConfigError while a gateway runs
 * on the folder. Throws OperationError when the key is a setting.
 */
export async function changeMasterKey(config: Config = loadConfig()): Promise<MasterKeyReport> {
  refuseSetting(config, 'change')
  const foundation = await openQuietly(config)
  try {
    const { dataDir } = foundation
    const former = join(dataDir, formerKeyName)
    // An existing old key means that a change was begun. If no value is sealed with it, that change is complete, and this run begins a new
    // one.
    const status = await new MasterKeys({ ...foundation, config }).status()
    const isUnderWay = existsSync(former) && !isCopy(dataDir) && status.inUse.some(({ state }) => state === 'other')
    if (!isUnderWay) renewKey(dataDir)
    return await reseal(keysNow(foundation, config))
  } finally {
    await foundation.db.close()
  }
}

/** Deletes `master.key.old`. Throws OperationError while a value is sealed with it, and ConfigError while a gateway runs on the folder. */
export async function forgetFormerKey(config: Config = loadConfig()): Promise<MasterKeyReport> {
  refuseSetting(config, 'forget')
  const foundation = await openQuietly(config)
  try {
    const file = join(foundation.dataDir, formerKeyName)
    const status = await new MasterKeys({ ...foundation, config }).status()
    if (!existsSync(file)) return { ...status, next: `There is no ${file}: nothing is to be forgotten.` }
    const left = status.inUse.find(({ state }) => state === 'other')
    if (left !== undefined)
      throw new OperationError(`${left.values} values are still sealed under ${file} (${left.where.join(', ')}). Run brigade master-key reseal first.`)
    rmSync(file)
    return { ...status, others: [], next: `${file} is removed. Backups that were made before the change need it: keep a copy with them.` }
  } finally {
    await foundation.db.close()
  }
}

function refuseSetting(config: Config, verb: 'change' | 'forget'): void {
  if (config.MASTER_KEY === null && config.DATABASE_URL === null) return
  const how =
    verb === 'change'
      ? 'Set MASTER_KEY_OTHER to a new one (openssl rand -base64 32) on every process, swap the two, and run brigade master-key reseal'
      : 'Take MASTER_KEY_OTHER away when brigade master-key status shows nothing under it'
  throw new OperationError(`The master key of this installation is a setting, not the file master.key. ${how}: docs/operate/keys-and-secrets.md.`)
}

async function openQuietly(config: Config): Promise<Foundation> {
  return openFoundation(config, systemClock, makeLog('error'))
}

/** Returns whether both files contain the same key. This happens when the process is killed between the two steps of `renewKey`. */
function isCopy(dataDir: string): boolean {
  const read = (name: string): string | null => (existsSync(join(dataDir, name)) ? readFileSync(join(dataDir, name), 'utf8').trim() : null)
  return read(formerKeyName) !== null && read(formerKeyName) === read('master.key')
}

/** Copies the key to `master.key.old`, and then writes a new key. Both files are written by rename, so no file is ever incomplete. */
function renewKey(dataDir: string): void {
  const write = (name: string, text: string): void => {
    const draft = join(dataDir, `${name}.new`)
    writeFileSync(draft, text, { mode: 0o600, flush: true })
    chmodSync(draft, 0o600)
    renameSync(draft, join(dataDir, name))
  }
  write(formerKeyName, readFileSync(join(dataDir, 'master.key'), 'utf8'))
  write('master.key', `${newMasterKey()}\n`)
}

/** Reads the keys in the files again. */
function keysNow(foundation: Foundation, config: Config): MasterKeys {
  return new MasterKeys({ ...foundation, masterKey: loadMasterKey(config, foundation.dataDir), config })
}

async function reseal(keys: Pick<MasterKeys, 'reseal' | 'status'>): Promise<MasterKeyReport> {
  const done = await keys.reseal()
  const status = await keys.status()
  return {
    ...status,
    resealed: done.map(({ table, column, resealed }) => ({ where: `${table}.${column}`, values: resealed })),
    unopened: done.reduce((sum, { unopened }) => sum + unopened, 0),
    next: nextOf(status),
  }
}

function nextOf({ others, inUse }: MasterKeyStatus): string | null {
  const unknown = inUse.find(({ state }) => state === 'unknown')
  if (unknown !== undefined)
    return `Values are sealed under the key ${unknown.keyId}, which is not here: set it as MASTER_KEY_OTHER and run brigade master-key reseal. If it is lost, save their contents again.`
  if (inUse.some(({ state }) => state === 'other')) return 'When every process has the new key as its MASTER_KEY, run brigade master-key reseal.'
  if (others.length === 0) return null
  return `No value is sealed under ${others.join(', ')} any more. Take MASTER_KEY_OTHER away, or run brigade master-key forget: people then sign in again whose cookie it signed. Backups from before the change still need it.`
}
