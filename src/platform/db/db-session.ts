/**
 * What both drivers share above a connection: typed parameters and results come from `pg` itself (db-postgres.ts), transactions and
 * channels from here. A session is one PostgreSQL connection, real or embedded.
 */
import { DatabaseUnavailableError, type SqlValue, type Statement, statement, type Tx } from './db.ts'
import { queryableOver, type RawResult } from './db-queryable.ts'

/** One connection that runs one statement at a time. Errors are already translated by `translateError`. */
export interface Session {
  /** A named prepared statement. */
  run(statement: Statement<readonly SqlValue[], unknown>, params: readonly SqlValue[]): Promise<RawResult>
  /** Text without parameters; several statements are allowed. The command tag of the last one. */
  command(sql: string): Promise<string>
}

/** NOTIFY with values, which the command itself does not take. */
export const notifyStatement = statement<[channel: string, payload: string], never>('db.notify', 'select pg_notify($1::text, $2::text)')

/** A transaction that the caller must not touch any more. */
export class TransactionOverError extends Error {
  override readonly name = 'TransactionOverError'
}

/**
 * Runs `fn` between BEGIN and COMMIT. `onRoundTrip` is called once for every exchange. When `fn` throws, the transaction is rolled
 * back and the error rises; when even that fails, `onBroken` learns that the session is of no more use.
 */
export async function runTransaction<T>(session: Session, fn: (tx: Tx) => Promise<T>, onRoundTrip: () => void, onBroken: (error: unknown) => void): Promise<T> {
  let over = false
  // Statements that were begun concurrently run one after the other; those that follow a failure of `fn` do not run at all.
  let last: Promise<unknown> = Promise.resolve()
  const tx: Tx = {
    inTransaction: true,
    ...queryableOver((statement, params) => {
      const result = last.then(() => {
        if (over) throw new TransactionOverError(`${statement.name} was run on a transaction that has ended`)
        onRoundTrip()
        return session.run(statement, params)
      })
      last = result.catch(() => {})
      return result
    }),
  }
  onRoundTrip()
  await session.command('begin isolation level read committed')
  let value: T
  try {
    value = await fn(tx)
  } catch (error) {
    over = true
    await last
    onRoundTrip()
    await session.command('rollback').catch(onBroken)
    throw error
  }
  await last
  over = true
  onRoundTrip()
  // COMMIT of a transaction in which a statement failed answers ROLLBACK without an error: nothing was stored, so it must throw.
  const tag = await session.command('commit')
  if (tag !== 'COMMIT') throw new Error('the transaction was rolled back because one of its statements had failed')
  return value
}

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
])
// Shutdown, crash and start of the server, too many connections, and a statement that ran into the time limit.
const unavailableStates = new Set(['57P01', '57P02', '57P03', '57P05', '53300', '57014', '25P03'])
const sqlState = /^[0-9A-Z]{5}$/

/** Errors of the connection become DatabaseUnavailableError; errors that the database itself reported stay as they are, with `code` and `constraint`. */
export function translateError(thrown: unknown): unknown {
  if (thrown instanceof DatabaseUnavailableError || !(thrown instanceof Error)) return thrown
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
  const isServerReport = 'severity' in thrown && sqlState.test(code)
  if (isServerReport) {
    const away = code.startsWith('08') || unavailableStates.has(code)
    return away ? new DatabaseUnavailableError(`the database is not available (${code})`, { cause: thrown }) : thrown
  }
  if (unreachableCodes.has(code)) return new DatabaseUnavailableError(`the database cannot be reached (${code})`, { cause: thrown })
  // Refusals of all addresses of a host arrive as one AggregateError; lost connections and timeouts of the driver have only a text.
  if (
    /^(Connection terminated|timeout exceeded|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after)/.test(
      thrown.message,
    )
  )
    return new DatabaseUnavailableError(`the database is not available: ${thrown.message}`, { cause: thrown })
  return thrown
}

/** True when the error came from the database as a report on one statement, so that the connection itself is sound. */
export function isStatementError(thrown: unknown): boolean {
  return thrown instanceof Error && !(thrown instanceof DatabaseUnavailableError) && 'severity' in thrown
}

/** A channel name that needs no quoting. */
export function checkedChannel(channel: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(channel)) throw new Error(`"${channel}" is not a channel name`)
  return channel
}

interface Listener {
  readonly fn: (payload: string) => void
  readonly onReconnect: (() => void) | undefined
}

/** Who listens to which channel. */
export class Listeners {
  readonly #byChannel = new Map<string, Set<Listener>>()

  /** Adds a listener; true when it is the first of its channel. The returned function removes it: true when it was the last. */
  add(channel: string, fn: (payload: string) => void, onReconnect?: () => void): { isFirst: boolean; remove(): boolean } {
    const listener: Listener = { fn, onReconnect }
    const set = this.#byChannel.get(channel) ?? new Set()
    const isFirst = set.size === 0
    this.#byChannel.set(channel, set.add(listener))
    return {
      isFirst,
      remove: () => {
        const wasThere = set.delete(listener)
        if (!wasThere || set.size > 0) return false
        if (this.#byChannel.get(channel) === set) this.#byChannel.delete(channel)
        return true
      },
    }
  }

  get channels(): readonly string[] {
    return [...this.#byChannel.keys()]
  }

  dispatch(channel: string, payload: string): void {
    for (const listener of [...(this.#byChannel.get(channel) ?? [])]) listener.fn(payload)
  }

  reconnected(): void {
    for (const set of [...this.#byChannel.values()]) for (const listener of [...set]) listener.onReconnect?.()
  }
}
