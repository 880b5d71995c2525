/**
 * Connects to PostgreSQL through `pg`. Only this file imports `pg`. The embedded database uses the same protocol over a stream, so this file also makes its
 * session. Both databases therefore encode, decode and fail in the same way. Decision 0012 gives the reasons.
 */
import type { Duplex } from 'node:stream'
import pg from 'pg'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../observe/log.ts'
import type { Secret } from '../../security/secret.ts'
import { DatabaseUnavailableError, type Db, type PoolState, type SqlValue, type Statement, statement, type Tx } from '../db.ts'
import { queryableOver, type RawResult } from '../db-queryable.ts'
import { isStatementError, notifyStatement, runTransaction, type Session, translateError } from '../db-session.ts'
import { arrayText } from './array-text.ts'
import { PostgresChannels } from './db-postgres-channels.ts'
import type { DatabasePlace } from './start-fault.ts'

export interface PostgresOptions {
  /** Maximum number of connections of the pool, without the listening one. */
  readonly poolMax: number
  /** True: statements and transactions have no time limits. It is meant for long work, such as moving all data. */
  readonly isPatient?: boolean
  readonly clock: Clock
  readonly log: Log
}

/**
 * Longest wait for a connection, new or from a busy pool, in milliseconds. The project chose this number. With a longer wait, more requests would pile up
 * in this process.
 */
const connectTimeoutMs = 4000
/** The server ends a statement after this time. Migrations have no limit. */
const statementTimeoutMs = 30_000
/** The client stops waiting for a reply after this time. The server should have ended the statement earlier, so the connection is dead. */
const replyTimeoutMs = 35_000
/** The server ends a transaction that sends nothing for this time. Until then, the locks of a frozen process block others. */
const idleInTransactionTimeoutMs = 10_000
const keepAliveDelayMs = 10_000
const oldestServerVersion = 140_000

const oid = { int8: 20, date: 1082, dateArray: 1182, int8Array: 1016, numericArray: 1231, textArray: 1009 } as const
const asText = (text: string): string => text
// The driver's list of type ids has no array types, but its parsers know them.
const builtinParser = pg.types.getTypeParser as (id: number, format: 'text' | 'binary') => (text: string) => unknown
const textArray = builtinParser(oid.textArray, 'text') as (text: string) => (string | null)[]
const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [oid.int8, text => BigInt(text)],
  [oid.date, asText],
  [oid.dateArray, textArray],
  [oid.numericArray, textArray],
  [oid.int8Array, text => textArray(text).map(item => (item === null ? null : BigInt(item)))],
])

/** Type parsers of the gateway's own connections. The global table of the driver is not changed. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format: 'text' | 'binary' = 'text') =>
    (format === 'text' ? parsers.get(id) : undefined) ?? builtinParser(id, format)) as typeof pg.types.getTypeParser,
}

/** Returns the session over a connected client. */
export function sessionOver(client: pg.ClientBase): Session {
  const guarded = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      throw translateError(error)
    }
  }
  return {
    run: async (made, params): Promise<RawResult> => await guarded(client.query({ name: made.name, text: made.text, values: params.map(arrayText) })),
    async command(sql) {
      // For several statements, `pg` returns a list of results, although its types declare one result.
      const result: unknown = await guarded(client.query(sql))
      const last: unknown = Array.isArray(result) ? result.at(-1) : result
      return (last as { command?: string } | undefined)?.command ?? ''
    },
  }
}

/** Settings that affect results. They are the same on every connection of both databases. */
export const sessionSettings = "set timezone = 'UTC'; set datestyle = 'ISO'; set standard_conforming_strings = on"

async function prepareSession(client: pg.ClientBase): Promise<void> {
  await client.query(sessionSettings)
}

/**
 * Opens a session over a stream to a PostgreSQL backend, for the embedded database. `notification` gets every NOTIFY. `lost` is called when
 * the stream ends by itself.
 */
export async function openSessionOver(
  stream: Duplex,
  on: { notification(channel: string, payload: string): void; lost(error: Error): void },
): Promise<{ session: Session; close(): Promise<void> }> {
  const client = new pg.Client({ host: 'embedded', user: 'postgres', database: 'postgres', password: '', ssl: false, types, stream: () => stream })
  client.on('notification', message => on.notification(message.channel, message.payload ?? ''))
  client.on('error', error => on.lost(error))
  await client.connect()
  await prepareSession(client)
  return { session: sessionOver(client), close: () => client.end() }
}

/**
 * Opens a pool and checks the server. Throws DatabaseUnavailableError when the server cannot be reached within about 4 s, and an Error when
 * it is older than PostgreSQL 14.
 */
export async function openPostgres(url: Secret, options: PostgresOptions): Promise<Db> {
  const connection: pg.ClientConfig = {
    connectionString: url.reveal(),
    application_name: 'brigade',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    types,
  }
  const pool = new pg.Pool({
    ...connection,
    max: options.poolMax,
    ...(options.isPatient === true
      ? {}
      : { statement_timeout: statementTimeoutMs, query_timeout: replyTimeoutMs, idle_in_transaction_session_timeout: idleInTransactionTimeoutMs }),
    idleTimeoutMillis: 60_000,
    onConnect: prepareSession,
  })
  // The pool drops an idle connection that breaks. Without a listener, the event would end the process.
  pool.on('error', error => options.log.warn('database_connection_lost', { error }))
  const db = new PostgresDb(pool, connection, url, options)
  try {
    await db.checkServer()
  } catch (error) {
    await db.close()
    throw error
  }
  return db
}

/**
 * Returns where a connection with this URL goes, with the defaults of the driver, and without the password. Throws an Error for a text that is no URL of
 * PostgreSQL.
 */
export function placeOf(url: Secret): DatabasePlace {
  // The driver takes any other text for the name of a database.
  if (!/^(postgres(ql)?:\/\/|socket:|\/)/.test(url.reveal())) throw new Error('not a URL of PostgreSQL')
  const { host, port, database = '', user = '' } = new pg.Client({ connectionString: url.reveal() })
  return { host, port, database, user }
}

const versionStatement = statement<[], { version: string }>('db.server_version', `select current_setting('server_version_num') as "version"`)

class PostgresDb implements Db {
  readonly kind = 'postgres'
  readonly many: Db['many']
  readonly maybe: Db['maybe']
  readonly one: Db['one']
  readonly exec: Db['exec']
  readonly address: Secret
  readonly #pool: pg.Pool
  readonly #connection: pg.ClientConfig
  readonly #channels: PostgresChannels
  #roundTrips = 0
  #closing: Promise<void> | null = null

  constructor(pool: pg.Pool, connection: pg.ClientConfig, address: Secret, options: PostgresOptions) {
    this.address = address
    this.#pool = pool
    this.#connection = connection
    // The listening connection serves only LISTEN and its heartbeat, so its replies have the short time limit of a connect.
    const connect = (): pg.Client => new pg.Client({ ...connection, query_timeout: connectTimeoutMs })
    this.#channels = new PostgresChannels(connect, options.clock, options.log)
    const queries = queryableOver((made, params) => this.#run(made, params))
    this.many = queries.many
    this.maybe = queries.maybe
    this.one = queries.one
    this.exec = queries.exec
  }

  get roundTrips(): number {
    return this.#roundTrips
  }

  get pool(): PoolState {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { inUse: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  async checkServer(): Promise<void> {
    const version = await this.#withSession(async session => Number(((await session.run(versionStatement, [])).rows[0] as { version: string }).version))
    if (version < oldestServerVersion) throw new Error(`PostgreSQL 14 or newer is needed; the server reports ${version}`)
  }

  #run(made: Statement<readonly SqlValue[], unknown>, params: readonly SqlValue[]): Promise<RawResult> {
    return this.#withSession(session => {
      this.#roundTrips++
      return session.run(made, params)
    })
  }

  tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#withSession((session, breakIt) => runTransaction(session, fn, () => this.#roundTrips++, breakIt))
  }

  /** Runs `work` with a connection of the pool. The connection goes back to the pool unless it failed. */
  async #withSession<T>(work: (session: Session, breakIt: (error: unknown) => void) => Promise<T>): Promise<T> {
    let client: pg.PoolClient
    try {
      client = await this.#pool.connect()
    } catch (error) {
      throw translateError(error)
    }
    let broken = false
    // The pool removes its error listener while a client is in use. This listener receives the error when the connection breaks between two statements.
    const onError = (): void => {
      broken = true
    }
    client.on('error', onError)
    try {
      return await work(sessionOver(client), onError)
    } catch (error) {
      // A connection in an unknown state must not serve another caller. If the server only reported an error about one statement, the connection is still
      // usable.
      if (error instanceof DatabaseUnavailableError && !isStatementTimeout(error)) broken = true
      throw error
    } finally {
      client.off('error', onError)
      client.release(broken)
    }
  }

  async script(sql: string): Promise<void> {
    // The script gets a connection of its own, because a migration has no time limit and the pool must not get its session settings.
    const client = new pg.Client(this.#connection)
    client.on('error', () => {})
    try {
      await client.connect()
      await prepareSession(client)
      this.#roundTrips++
      await client.query(sql)
    } catch (error) {
      throw translateError(error)
    } finally {
      // Ending the connection also rolls back a transaction that the script left open.
      await client.end().catch(() => {})
    }
  }

  listen(channel: string, fn: (payload: string) => void, onReconnect?: () => void): Promise<() => Promise<void>> {
    return this.#channels.listen(channel, fn, onReconnect)
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.exec(notifyStatement, channel, payload)
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#channels.close(), this.#pool.end()]).then(() => undefined)
    return this.#closing
  }
}

/** Returns whether the server cancelled only one statement, so that the connection is still usable. */
function isStatementTimeout(error: DatabaseUnavailableError): boolean {
  const cause: unknown = error.cause
  return isStatementError(cause) && cause instanceof Error && 'code' in cause && cause.code === '57014'
}
