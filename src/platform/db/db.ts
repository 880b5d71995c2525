/**
 * The database port: typed, named statements over PostgreSQL (`pg`) or the embedded PGlite. Both return the same types.
 *
 * | SQL type | value |
 * |---|---|
 * | int2, int4, float8 | number |
 * | int8 | bigint |
 * | numeric | string |
 * | bool, text, uuid, varchar | boolean, string, string, string |
 * | timestamptz | Date |
 * | date | string `2026-11-21` |
 * | json, jsonb | parsed value |
 * | bytea | Buffer |
 * | int4[], int8[], text[] | arrays of the above |
 *
 * Parameters take the same values. A bigint is sent as text, and an array as a PostgreSQL array. For json, the caller passes the text that
 * JSON.stringify made.
 *
 * Decision 0002 says why there are two databases.
 */
import type { Secret } from '../security/secret.ts'

export type SqlValue = string | number | bigint | boolean | null | Date | Buffer | readonly (string | number | bigint | boolean | null | Date)[]

/**
 * A named statement. `P` are its parameters in order. `R` is the shape of one row, with the column aliases of the SQL (camelCase in
 * quotes).
 */
export interface Statement<P extends readonly SqlValue[], R> {
  readonly name: string
  readonly text: string
  /** This field and the next exist only for the type checker. */
  readonly _params?: P
  readonly _row?: R
}

const registry = new Map<string, Statement<readonly SqlValue[], unknown>>()

/**
 * Declares a statement. Names have the form `<domain>.<verb_noun>` and are unique. A test prepares every statement against the migrated
 * schema.
 */
export function statement<P extends readonly SqlValue[], R = never>(name: string, text: string): Statement<P, R> {
  if (registry.has(name)) throw new Error(`two statements are called ${name}`)
  const made: Statement<P, R> = { name, text }
  registry.set(name, made as unknown as Statement<readonly SqlValue[], unknown>)
  return made
}

/** Returns every statement that the imported modules have declared so far. */
export function allStatements(): readonly Statement<readonly SqlValue[], unknown>[] {
  return [...registry.values()]
}

export interface Queryable {
  /** Returns all rows. */
  many<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R[]>
  /** Returns the row or null. Throws an Error for two or more rows. */
  maybe<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R | null>
  /** Returns exactly one row. Throws an Error for any other number. */
  one<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R>
  /** Runs the statement. Returns the number of affected rows. */
  exec<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<number>
}

/** A running transaction. A function that must run inside one takes this type. */
export interface Tx extends Queryable {
  readonly inTransaction: true
}

/** Numbers of connections in the pool and of callers that wait for one. */
export interface PoolState {
  readonly inUse: number
  readonly idle: number
  readonly waiting: number
}

export interface Db extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /**
   * Runs `fn` in one READ COMMITTED transaction. Commits when it resolves, rolls back when it throws. Never use the outer `db` inside `fn`,
   * because the embedded database has only one session.
   */
  tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Calls `fn` for every NOTIFY on the channel until the returned function is called. After a lost connection it listens again and calls
   * `onReconnect`, because notifications may have been missed.
   */
  listen(channel: string, fn: (payload: string) => void, onReconnect?: () => void): Promise<() => Promise<void>>
  /**
   * Sends NOTIFY outside a transaction. The payload may have at most 7,999 bytes. Inside a transaction use the statement `select
   * pg_notify(...)`.
   */
  notify(channel: string, payload: string): Promise<void>
  /** Runs several statements without parameters (migrations). */
  script(sql: string): Promise<void>
  /** Number of round trips so far. Tests of the hot path count them. */
  readonly roundTrips: number
  /** The state of the connection pool. Absent when there is no pool. */
  readonly pool?: PoolState
  /** The address at which a thread can open this database itself. Absent on the embedded database, which has one session. */
  readonly address?: Secret
  close(): Promise<void>
}

/** The part of the port that runs statements and transactions. A thread has only this part. */
export type StatementDb = Pick<Db, keyof Queryable | 'tx' | 'kind'>

/** Is thrown when the database cannot be reached or dropped the connection. HTTP and MCP reply 503 `database_unavailable`. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError'
}

/**
 * Returns whether an error is a violation of a unique constraint. With `constraint`, only a violation of that one counts. Both drivers report SQLSTATE
 * 23505.
 */
export function isUniqueViolation(thrown: unknown, constraint?: string): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false
  const e = thrown as { code?: unknown; constraint?: unknown }
  return e.code === '23505' && (constraint === undefined || e.constraint === constraint)
}
