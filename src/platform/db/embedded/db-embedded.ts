/**
 * The embedded database: PGlite in a worker thread, with the same interface as PostgreSQL. It has one session. A transaction owns the session, and all
 * other work waits its turn. A committed transaction survives a kill of the process, but not a power cut, because PGlite does not fsync. When the thread
 * dies, a new one opens the same folder. Statements that were running fail, and statements that were waiting continue. Decision 0010 says why it is a
 * thread, and Decision 0411 why the thread is replaced.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../observe/log.ts'
import { DatabaseUnavailableError, type Db, type Tx } from '../db.ts'
import { queryableOver } from '../db-queryable.ts'
import { checkedChannel, Listeners, notifyStatement, runTransaction, type Session, translateError } from '../db-session.ts'
import { openSessionOver, sessionSettings } from '../postgres/db-postgres.ts'
import { EmbeddedBackend } from './db-embedded-backend.ts'
import { Turns } from './db-embedded-turns.ts'
import type { WorkerStart } from './db-embedded-worker.ts'
import { type FolderLock, lockFolder } from './folder-lock.ts'
import { unpackArchive } from './unpack-archive.ts'

export interface EmbeddedOptions {
  readonly clock: Clock
  readonly log: Log
  /** A data folder from `dump` to start from. Allowed only with 'memory' or an empty folder. */
  readonly load?: Uint8Array
  /** Is called once when the thread is lost and cannot be replaced. Every query fails from then on, so the process should end. */
  readonly onGivenUp?: (error: DatabaseUnavailableError) => void
}

/** When the thread is lost more often than this within `lossesSpanMs`, the database gives up instead of starting another thread. */
const lossesMax = 5
const lossesSpanMs = 60_000

/** The database port with the functions that only the embedded database has. */
export interface EmbeddedDb extends Db {
  readonly kind: 'embedded'
  /** Returns the whole data folder as a tar archive, for tests and copies. */
  dump(): Promise<Uint8Array>
  /**
   * Runs `work` while nothing writes to the database files. At that time the files contain all acknowledged writes. If `work` copies `folder/postgres`, the
   * copy can be opened like the files of a process that was killed at that moment. Queries wait for `work`, so it must take less than 10 s.
   */
  quietly<T>(work: () => Promise<T>): Promise<T>
}

/** Returns whether the database is the embedded one. */
export function isEmbedded(db: Db): db is EmbeddedDb {
  return db.kind === 'embedded'
}

/**
 * Opens the database in `folder/postgres`, or one in memory. Only one process may use the folder. A second open, in this process or
 * another, throws ConfigError.
 */
export async function openEmbedded(folder: string | 'memory', options: EmbeddedOptions): Promise<EmbeddedDb> {
  const lock = folder === 'memory' ? null : await lockFolder(folder)
  try {
    const dataFolder = folder === 'memory' ? null : join(folder, 'postgres')
    const listeners = new Listeners()
    const connect = (load: Uint8Array | null): Promise<Connection> => connectTo({ folder: dataFolder, load }, listeners)
    const isNew = dataFolder !== null && isEmpty(dataFolder)
    if (isNew) await makeFiles(dataFolder, options.load ?? null)
    const first = await connect(isNew ? null : (options.load ?? null))
    return new EmbeddedDatabase(first, dataFolder === null ? null : () => connect(null), listeners, lock, options)
  } catch (error) {
    await lock?.release()
    throw error
  }
}

/**
 * Makes the files of a new database: from `load`, from the archive of an empty database that the build made, or from nothing. The files are made next to
 * `dataFolder` and moved there when they are complete, so that a kill leaves no partial files. Without an archive a thread of its own makes them. It needs up
 * to 600 MiB of memory, which is freed when the thread ends.
 */
async function makeFiles(dataFolder: string, load: Uint8Array | null): Promise<void> {
  const fresh = `${dataFolder}.new`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { recursive: true, mode: 0o700 })
  try {
    const archive = load ?? archiveOfEmpty()
    if (archive !== null) await unpackArchive(archive, fresh)
    else await (await EmbeddedBackend.start(workerFile(), { folder: fresh, load: null })).close()
    if (existsSync(dataFolder)) rmdirSync(dataFolder)
    renameSync(fresh, dataFolder)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

const isEmpty = (folder: string): boolean => !existsSync(folder) || readdirSync(folder).length === 0

/** Returns the archive that is in the folder of the worker file. Null when there is none. */
function archiveOfEmpty(): Uint8Array | null {
  const folder = dirname(workerFile())
  const name = readdirSync(folder).find(each => each.startsWith('new-database-'))
  return name === undefined ? null : readFileSync(join(folder, name))
}

/** A running thread with its session. */
interface Connection {
  readonly backend: EmbeddedBackend
  readonly session: Session
  /** Calls `fn` when the thread or the session is lost. It may be called twice. */
  onLost(fn: (error: Error) => void): void
  /** Closes the session and then the thread. */
  close(): Promise<void>
}

async function connectTo(start: WorkerStart, listeners: Listeners): Promise<Connection> {
  const backend = await EmbeddedBackend.start(workerFile(), start)
  try {
    let lost: (error: Error) => void = () => {}
    const { session, close } = await openSessionOver(backend.stream, {
      notification: (channel, payload) => listeners.dispatch(channel, payload),
      lost: error => lost(error),
    })
    return {
      backend,
      session,
      onLost(fn) {
        lost = fn
        backend.onLost(fn)
      },
      async close() {
        lost = () => {}
        await close()
        await backend.close()
      },
    }
  } catch (error) {
    // The thread must have closed the files before the lock is released.
    await backend.kill()
    throw error
  }
}

/** Returns the path of the compiled worker. It is in dist, also when this file runs as TypeScript. */
function workerFile(): string {
  const here = new URL(import.meta.url)
  const isSource = here.pathname.endsWith('.ts')
  const file = fileURLToPath(new URL(isSource ? '../../../../dist/platform/db/embedded/db-embedded-worker.js' : './db-embedded-worker.js', here))
  if (!existsSync(file)) throw new Error(`${file} is missing: the embedded database runs from the built files; run "npm run build" first`)
  return file
}

class EmbeddedDatabase implements EmbeddedDb {
  readonly kind = 'embedded'
  readonly many: Db['many']
  readonly maybe: Db['maybe']
  readonly one: Db['one']
  readonly exec: Db['exec']
  readonly #reconnect: (() => Promise<Connection>) | null
  readonly #listeners: Listeners
  readonly #lock: FolderLock | null
  readonly #options: EmbeddedOptions
  readonly #turns: Turns
  #connection: Connection
  /** The error that broke the connection. Null while the connection works. */
  #loss: Error | null = null
  /** Times of the recent losses, by the monotonic clock. */
  #lossesMs: number[] = []
  #givenUp: DatabaseUnavailableError | null = null
  #roundTrips = 0
  #closing: Promise<void> | null = null

  constructor(connection: Connection, reconnect: (() => Promise<Connection>) | null, listeners: Listeners, lock: FolderLock | null, options: EmbeddedOptions) {
    this.#connection = connection
    this.#reconnect = reconnect
    this.#listeners = listeners
    this.#lock = lock
    this.#options = options
    this.#turns = new Turns(options.clock)
    this.#watch(connection)
    const queries = queryableOver((made, params) =>
      this.#run(session => {
        this.#roundTrips++
        return session.run(made, params)
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

  /** Runs `work` alone on a working session. After a loss, the next turn makes a new session. */
  #run<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      if (this.#loss !== null) await this.#replace(this.#loss)
      return await work(this.#connection.session)
    })
  }

  #watch(connection: Connection): void {
    connection.onLost(error => {
      if (connection !== this.#connection || this.#loss !== null || this.#closing !== null) return
      this.#loss = error
      this.#options.log.error('embedded_database_lost', { error })
      // A turn without work starts the new thread. If the start fails, the next caller gets the error.
      this.#run(async () => {}).catch(() => {})
    })
  }

  /**
   * Starts a new thread on the same folder, which recovers as after a kill of the process. Throws DatabaseUnavailableError when no thread
   * can be started.
   */
  async #replace(first: Error): Promise<void> {
    if (this.#givenUp !== null) throw this.#givenUp
    await this.#connection.backend.kill()
    let cause: unknown = first
    const { clock, log } = this.#options
    while (this.#reconnect !== null && this.#mayTry(clock.monotonicMs())) {
      try {
        const connection = await this.#reconnect()
        this.#connection = connection
        this.#loss = null
        this.#watch(connection)
        for (const channel of this.#listeners.channels) await connection.session.command(`listen "${channel}"`)
        log.warn('embedded_database_replaced')
        // Notifications that were sent since the loss did not arrive.
        this.#listeners.reconnected()
        return
      } catch (error) {
        cause = error
        this.#loss = error instanceof Error ? error : new Error(String(error))
        await this.#connection.backend.kill()
      }
    }
    throw this.#giveUp(cause)
  }

  #mayTry(nowMs: number): boolean {
    this.#lossesMs = [...this.#lossesMs.filter(atMs => nowMs - atMs < lossesSpanMs), nowMs]
    return this.#lossesMs.length <= lossesMax
  }

  #giveUp(cause: unknown): DatabaseUnavailableError {
    const words = cause instanceof Error ? cause.message : String(cause)
    const why =
      this.#reconnect === null
        ? 'a database in memory is lost with its thread'
        : `its thread was lost, or could not be started again, more than ${lossesMax} times within ${lossesSpanMs / 1000} s`
    this.#givenUp = new DatabaseUnavailableError(`the embedded database cannot go on: ${why}. The last cause: ${words}`, { cause })
    this.#options.onGivenUp?.(this.#givenUp)
    return this.#givenUp
  }

  tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#run(session =>
      runTransaction(
        session,
        fn,
        () => this.#roundTrips++,
        () => {},
      ),
    )
  }

  script(sql: string): Promise<void> {
    return this.#run(async session => {
      this.#roundTrips++
      try {
        await session.command(sql)
      } finally {
        // An open transaction or changed settings of the script must not affect the next caller, because there is only this session.
        await session.command('rollback').catch(() => {})
        await session.command(`reset all; ${sessionSettings}`).catch(() => {})
      }
    })
  }

  async listen(channel: string, fn: (payload: string) => void, onReconnect?: () => void): Promise<() => Promise<void>> {
    const name = checkedChannel(channel)
    const added = this.#listeners.add(name, fn, onReconnect)
    try {
      await this.#run(session => session.command(`listen "${name}"`))
    } catch (error) {
      added.remove()
      throw error
    }
    return async () => {
      if (!added.remove() || this.#closing !== null) return
      await this.#run(async session => {
        // Another caller may have begun to listen in the meantime.
        if (!this.#listeners.channels.includes(name)) await session.command(`unlisten "${name}"`)
      })
    }
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.exec(notifyStatement, channel, payload)
  }

  async dump(): Promise<Uint8Array> {
    try {
      return await this.#run(() => this.#connection.backend.dump())
    } catch (error) {
      throw translateError(error)
    }
  }

  quietly<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(async session => {
      // A checkpoint writes the changed pages from memory to the files, so that a copy needs little recovery.
      await session.command('checkpoint')
      return await work()
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#turns.close(new DatabaseUnavailableError('the database is closed'))
    if (this.#loss === null) await this.#connection.close()
    else await this.#connection.backend.kill()
    await this.#lock?.release()
  }
}
