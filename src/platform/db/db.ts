/**
 * The database port: typed, named statements over PostgreSQL (`pg`) or the embedded PGlite, with the same types from both.
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
 * Parameters take the same values; bigint goes as text, arrays as PostgreSQL arrays, plain objects for json as JSON text that the
 * caller made with JSON.stringify.
 *
 * Decision 0002 says why there are two.
 */
export type SqlValue = string | number | bigint | boolean | null | Date | Buffer | readonly (string | number | bigint | boolean | null | Date)[]

/** A named statement. `P` are its parameters in order, `R` the shape of one row as the SQL aliases it (camelCase in quotes). */
export interface Statement<P extends readonly SqlValue[], R> {
  readonly name: string
  readonly text: string
  /** Type carriers only. */
  readonly _params?: P
  readonly _row?: R
}

const registry = new Map<string, Statement<readonly SqlValue[], unknown>>()

/** Declares a statement. Names are `<domain>.<verb_noun>` and unique; a test PREPAREs every one against the migrated schema. */
export function statement<P extends readonly SqlValue[], R = never>(name: string, text: string): Statement<P, R> {
  if (registry.has(name)) throw new Error(`two statements are called ${name}`)
  const made: Statement<P, R> = { name, text }
  registry.set(name, made as unknown as Statement<readonly SqlValue[], unknown>)
  return made
}

/** Every statement declared so far by the modules that were imported. */
export function allStatements(): readonly Statement<readonly SqlValue[], unknown>[] {
  return [...registry.values()]
}

export interface Queryable {
  /** All rows. */
  many<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R[]>
  /** The one row or null; two or more throw. */
  maybe<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R | null>
  /** Exactly one row; anything else throws. */
  one<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R>
  /** Runs it; the number of rows it touched. */
  exec<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<number>
}

/** A running transaction: a function that must not run outside one takes this type. */
export interface Tx extends Queryable {
  readonly inTransaction: true
}

/** What the pool of connections looks like. */
export interface PoolState {
  readonly inUse: number
  readonly idle: number
  readonly waiting: number
}

export interface Db extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /** Runs `fn` in one READ COMMITTED transaction; commits when it resolves, rolls back when it throws. Never call the outer `db` inside: the embedded database has one session. */
  tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T>
  /** Calls `fn` for every NOTIFY on the channel until the returned function is awaited. After a lost connection it listens again and calls `onReconnect`, because news may have been missed. */
  listen(channel: string, fn: (payload: string) => void, onReconnect?: () => void): Promise<() => Promise<void>>
  /** NOTIFY outside a transaction. Payload at most 7,999 bytes. Inside one use `select pg_notify(...)` as a statement. */
  notify(channel: string, payload: string): Promise<void>
  /** A script of several statements without parameters (migrations). */
  script(sql: string): Promise<void>
  /** Round trips so far: the hot path's tests count them. */
  readonly roundTrips: number
  /** Connections of the pool now, and how many callers wait for one; left out where there is no pool. */
  readonly pool?: PoolState
  close(): Promise<void>
}

/** Thrown (wrapped) when the database cannot be reached or dropped the connection; edges answer 503 `database_unavailable`. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError'
}

/** True for a unique-constraint violation, of that constraint when one is named. Both drivers report SQLSTATE 23505. */
export function isUniqueViolation(thrown: unknown, constraint?: string): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false
  const e = thrown as { code?: unknown; constraint?: unknown }
  return e.code === '23505' && (constraint === undefined || e.constraint === constraint)
}
