/**
 * PostgreSQL through `pg`: the only file that imports it. Also makes the session of the embedded database, which speaks the same
 * protocol over a stream, so that both databases encode, decode and fail in the same way. Decision 0012 says why.
 */
import type { Duplex } from 'node:stream'
import pg from 'pg'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../observe/log.ts'
import type { Secret } from '../../security/secret.ts'
import { DatabaseUnavailableError, type Db, type PoolState, type SqlValue, type Statement, statement, type Tx } from '../db.ts'
import { queryableOver, type RawResult } from '../db-queryable.ts'
import { isStatementError, notifyStatement, runTransaction, type Session, translateError } from '../db-session.ts'
import { PostgresChannels } from './db-postgres-channels.ts'

export interface PostgresOptions {
  /** Most connections of the pool, without the listening one. */
  readonly poolMax: number
  /** No time limits of statements and transactions: for work that takes as long as it takes, such as moving all data. */
  readonly isPatient?: boolean
  readonly clock: Clock
  readonly log: Log
}

/** Longest wait for a connection, new or from a busy pool. Ours: longer waits only move the pile-up into this process. */
const connectTimeoutMs = 4000
/** The server ends a statement after this long; migrations have no limit. */
const statementTimeoutMs = 30_000
/** The client gives up on a reply that much later than the server should have ended it: the connection is dead. */
const replyTimeoutMs = 35_000
/** The server ends a transaction that asks nothing for this long. A process that is frozen inside one holds the locks of counters until then, so others wait for it. */
const idleInTransactionTimeoutMs = 10_000
const keepAliveDelayMs = 10_000
const oldestServerVersion = 140_000

const oid = { int8: 20, date: 1082, dateArray: 1182, int8Array: 1016, numericArray: 1231, textArray: 1009 } as const
const asText = (text: string): string => text
// The driver's list of type ids names no array types, but its parsers know them.
const builtinParser = pg.types.getTypeParser as (id: number, format: 'text' | 'binary') => (text: string) => unknown
const textArray = builtinParser(oid.textArray, 'text') as (text: string) => (string | null)[]
const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [oid.int8, text => BigInt(text)],
  [oid.date, asText],
  [oid.dateArray, textArray],
  [oid.numericArray, textArray],
  [oid.int8Array, text => textArray(text).map(item => (item === null ? null : BigInt(item)))],
])

/** Type parsers of our connections only: the driver's global table stays as it is. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format: 'text' | 'binary' = 'text') =>
    (format === 'text' ? parsers.get(id) : undefined) ?? builtinParser(id, format)) as typeof pg.types.getTypeParser,
}

/** Arrays as the text that PostgreSQL reads, other values as they are. The driver does the same with much more ado for each element, which a flush of thousands of usage rows feels. */
function arrayText(value: SqlValue): unknown {
  if (!Array.isArray(value)) return value
  if (value.length > 0 && value.every(isPlainText)) return `{"${value.join('","')}"}`
  if (value.every(isPlainNumber)) return `{${value.join(',')}}`
  let text = ''
  for (const item of value as readonly unknown[]) {
    if (text !== '') text += ','
    if (item === null || typeof item === 'number' || typeof item === 'bigint' || typeof item === 'boolean') text += `${item}`
    else if (typeof item === 'string') text += `"${needsEscape.test(item) ? item.replaceAll(/["\\]/g, '\\$&') : item}"`
    else if (item instanceof Date) text += item.toISOString()
    else return value
  }
  return `{${text}}`
}

const needsEscape = /["\\]/
// Columns of a flush are nearly always one of these, and joining them makes no text for each element.
const isPlainText = (item: unknown): boolean => typeof item === 'string' && !needsEscape.test(item)
const isPlainNumber = (item: unknown): boolean => typeof item === 'number' || typeof item === 'bigint' || typeof item === 'boolean'

/** The session over a connected client. */
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
      // A text of several statements answers with a list of results although the types say one.
      const result: unknown = await guarded(client.query(sql))
      const last: unknown = Array.isArray(result) ? result.at(-1) : result
      return (last as { command?: string } | undefined)?.command ?? ''
    },
  }
}

/** Settings that results depend on, the same on every connection of both databases. */
export const sessionSettings = "set timezone = 'UTC'; set datestyle = 'ISO'; set standard_conforming_strings = on"

async function prepareSession(client: pg.ClientBase): Promise<void> {
  await client.query(sessionSettings)
}

/**
 * A session over a stream that leads to a PostgreSQL backend: the embedded database. `onNotification` gets every NOTIFY,
 * `onLost` is called when the stream ends on its own.
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
 * Opens a pool and checks the server. Throws DatabaseUnavailableError when it cannot be reached within about 4 s, and a plain
 * Error when it is older than PostgreSQL 14.
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
  // An idle connection that breaks is dropped by the pool; without a listener the event would end the process.
  pool.on('error', error => options.log.warn('database_connection_lost', { error }))
  const db = new PostgresDb(pool, connection, options)
  try {
    await db.checkServer()
  } catch (error) {
    await db.close()
    throw error
  }
  return db
}

const versionStatement = statement<[], { version: string }>('db.server_version', `select current_setting('server_version_num') as "version"`)

class PostgresDb implements Db {
  readonly kind = 'postgres'
  readonly many: Db['many']
  readonly maybe: Db['maybe']
  readonly one: Db['one']
  readonly exec: Db['exec']
  readonly #pool: pg.Pool
  readonly #connection: pg.ClientConfig
  readonly #channels: PostgresChannels
  #roundTrips = 0
  #closing: Promise<void> | null = null

  constructor(pool: pg.Pool, connection: pg.ClientConfig, options: PostgresOptions) {
    this.#pool = pool
    this.#connection = connection
    // One reply of the listening connection may take as long as a connect: it only answers LISTEN and its heartbeat.
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

  /** A connection of the pool for the time of `work`. It goes back unless the connection itself failed. */
  async #withSession<T>(work: (session: Session, breakIt: (error: unknown) => void) => Promise<T>): Promise<T> {
    let client: pg.PoolClient
    try {
      client = await this.#pool.connect()
    } catch (error) {
      throw translateError(error)
    }
    let broken = false
    // The pool takes its own listener off while a client is out: a connection that breaks between two statements reports here.
    const onError = (): void => {
      broken = true
    }
    client.on('error', onError)
    try {
      return await work(sessionOver(client), onError)
    } catch (error) {
      // A connection of unknown state must not serve another caller; after a report of the server on one statement it is sound.
      if (error instanceof DatabaseUnavailableError && !isStatementTimeout(error)) broken = true
      throw error
    } finally {
      client.off('error', onError)
      client.release(broken)
    }
  }

  async script(sql: string): Promise<void> {
    // A connection of its own: a migration has no time limit, and its session settings must not reach the pool.
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

/** The server cancelled one statement: the connection lives. */
function isStatementTimeout(error: DatabaseUnavailableError): boolean {
  const cause: unknown = error.cause
  return isStatementError(cause) && cause instanceof Error && 'code' in cause && cause.code === '57014'
}
