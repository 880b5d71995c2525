/**
 * The embedded database: PGlite in a worker thread behind the same port. There is one session: a transaction owns it, everything
 * else waits its turn. An acknowledged transaction survives a kill of the process, not a power cut (PGlite does not fsync).
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from './clock.ts'
import { DatabaseUnavailableError, type Db, type Tx } from './db.ts'
import { EmbeddedBackend } from './db-embedded-backend.ts'
import { Turns } from './db-embedded-turns.ts'
import { openSessionOver, sessionSettings } from './db-postgres.ts'
import { queryableOver } from './db-queryable.ts'
import { checkedChannel, Listeners, notifyStatement, runTransaction, type Session, translateError } from './db-session.ts'
import { type FolderLock, lockFolder } from './folder-lock.ts'
import type { Log } from './log.ts'

export interface EmbeddedOptions {
  readonly clock: Clock
  readonly log: Log
  /** A data folder as `dump` gave it, to start from; only with 'memory' or an empty folder. */
  readonly load?: Uint8Array
}

/** The port plus what only the embedded database has. */
export interface EmbeddedDb extends Db {
  readonly kind: 'embedded'
  /** The whole data folder as a tar archive, for tests and copies. */
  dump(): Promise<Uint8Array>
  /**
   * Runs `work` while nothing writes to the files of the database and everything acknowledged is in them: what it copies of
   * `folder/postgres` then opens as if the process had been killed at that moment. Queries wait meanwhile, so it must take less than 10 s.
   */
  quietly<T>(work: () => Promise<T>): Promise<T>
}

/** Whether this database has what only the embedded one has. */
export function isEmbedded(db: Db): db is EmbeddedDb {
  return db.kind === 'embedded'
}

/**
 * Opens the database in `folder/postgres`, or one in memory. The folder is this process's alone: a second open of it, here or in
 * another process, throws ConfigError.
 */
export async function openEmbedded(folder: string | 'memory', options: EmbeddedOptions): Promise<EmbeddedDb> {
  const lock = folder === 'memory' ? null : await lockFolder(folder)
  try {
    const dataFolder = folder === 'memory' ? null : join(folder, 'postgres')
    if (dataFolder !== null) mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
    const backend = await EmbeddedBackend.start(workerFile(), { folder: dataFolder, load: options.load ?? null })
    try {
      const listeners = new Listeners()
      const connection = await openSessionOver(backend.stream, {
        notification: (channel, payload) => listeners.dispatch(channel, payload),
        lost: error => options.log.error('embedded_database_lost', { error }),
      })
      return new EmbeddedDatabase(connection, backend, listeners, lock, options)
    } catch (error) {
      // The lock must not be free while the thread still has the files open.
      await backend.close()
      throw error
    }
  } catch (error) {
    await lock?.release()
    throw error
  }
}

/** The worker as JavaScript: beside this file in dist, and in dist too when this file runs as TypeScript. */
function workerFile(): string {
  const here = new URL(import.meta.url)
  const isSource = here.pathname.endsWith('.ts')
  const file = fileURLToPath(new URL(isSource ? '../../dist/platform/db-embedded-worker.js' : './db-embedded-worker.js', here))
  if (!existsSync(file)) throw new Error(`${file} is missing: the embedded database runs from the built files; run "npm run build" first`)
  return file
}

class EmbeddedDatabase implements EmbeddedDb {
  readonly kind = 'embedded'
  readonly many: Db['many']
  readonly maybe: Db['maybe']
  readonly one: Db['one']
  readonly exec: Db['exec']
  readonly #session: Session
  readonly #endSession: () => Promise<void>
  readonly #backend: EmbeddedBackend
  readonly #listeners: Listeners
  readonly #lock: FolderLock | null
  readonly #turns: Turns
  #roundTrips = 0
  #closing: Promise<void> | null = null

  constructor(
    connection: { readonly session: Session; close(): Promise<void> },
    backend: EmbeddedBackend,
    listeners: Listeners,
    lock: FolderLock | null,
    options: EmbeddedOptions,
  ) {
    this.#session = connection.session
    this.#endSession = () => connection.close()
    this.#backend = backend
    this.#listeners = listeners
    this.#lock = lock
    this.#turns = new Turns(options.clock)
    const queries = queryableOver((made, params) =>
      this.#turns.run(() => {
        this.#roundTrips++
        return this.#session.run(made, params)
      }),
    )
    this.many = queries.many
    this.maybe = queries.maybe
    this.one = queries.one
    this.exec = queries.exec
  }

  get roundTrips(): number {
    return this.#roundTrips
  }

  tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#turns.run(() =>
      runTransaction(
        this.#session,
        fn,
        () => this.#roundTrips++,
        () => {},
      ),
    )
  }

  script(sql: string): Promise<void> {
    return this.#turns.run(async () => {
      this.#roundTrips++
      try {
        await this.#session.command(sql)
      } finally {
        // A transaction that it left open and settings that it made must not reach the next caller: there is only this session.
        await this.#session.command('rollback').catch(() => {})
        await this.#session.command(`reset all; ${sessionSettings}`).catch(() => {})
      }
    })
  }

  async listen(channel: string, fn: (payload: string) => void): Promise<() => Promise<void>> {
    const name = checkedChannel(channel)
    const added = this.#listeners.add(name, fn)
    try {
      await this.#turns.run(() => this.#session.command(`listen "${name}"`))
    } catch (error) {
      added.remove()
      throw error
    }
    return async () => {
      if (!added.remove() || this.#closing !== null) return
      await this.#turns.run(async () => {
        // Someone may have begun to listen while this waited.
        if (!this.#listeners.channels.includes(name)) await this.#session.command(`unlisten "${name}"`)
      })
    }
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.exec(notifyStatement, channel, payload)
  }

  async dump(): Promise<Uint8Array> {
    try {
      return await this.#turns.run(() => this.#backend.dump())
    } catch (error) {
      throw translateError(error)
    }
  }

  quietly<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      // Pages in memory go to the files, so that the copy has little to recover.
      await this.#session.command('checkpoint')
      return await work()
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#turns.close(new DatabaseUnavailableError('the database is closed'))
    await this.#endSession()
    await this.#backend.close()
    await this.#lock?.release()
  }
}
