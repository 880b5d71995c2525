/** Transactions and channels on one PostgreSQL connection, for both databases. A session is one connection, to a server or to the embedded database. */
import { DatabaseUnavailableError, type SqlValue, type Statement, statement, type Tx } from './db.ts'
import { queryableOver, type RawResult } from './db-queryable.ts'

/** One connection that runs one statement at a time. Its errors have already passed through `translateError`. */
export interface Session {
  /** Runs a named prepared statement. */
  run(statement: Statement<readonly SqlValue[], unknown>, params: readonly SqlValue[]): Promise<RawResult>
  /** Runs SQL text without parameters, also several statements. Returns the command tag of the last one. */
  command(sql: string): Promise<string>
}

/** Sends NOTIFY with parameters, which the NOTIFY command itself does not accept. */
export const notifyStatement = statement<[channel: string, payload: string], never>('db.notify', 'select pg_notify($1::text, $2::text)')

/** A statement was run on a transaction that has ended. */
export class TransactionOverError extends Error {
  override readonly name = 'TransactionOverError'
}

/**
 * Runs `fn` between BEGIN and COMMIT. Calls `onRoundTrip` once for each exchange with the database. When `fn` throws, rolls back and throws
 * that error. When the rollback fails too, calls `onBroken`, because the session can no longer be used.
 */
export async function runTransaction<T>(session: Session, fn: (tx: Tx) => Promise<T>, onRoundTrip: () => void, onBroken: (error: unknown) => void): Promise<T> {
  let over = false
  // Statements that `fn` starts concurrently run one after the other. When `fn` has failed, statements that still wait do not run.
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
  // After a failed statement, COMMIT succeeds with the tag ROLLBACK. Nothing was stored then, so this function must throw.
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
// SQLSTATEs for shutdown, crash and start of the server, for too many connections, and for reached time limits.
const unavailableStates = new Set(['57P01', '57P02', '57P03', '57P05', '53300', '57014', '25P03'])
const sqlState = /^[0-9A-Z]{5}$/

/**
 * Turns errors of the connection into DatabaseUnavailableError. Errors that the database reports about a statement are not changed. They keep `code` and
 * `constraint`.
 */
export function translateError(thrown: unknown): unknown {
  if (thrown instanceof DatabaseUnavailableError || !(thrown instanceof Error)) return thrown
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
  const isServerReport = 'severity' in thrown && sqlState.test(code)
  if (isServerReport) {
    const away = code.startsWith('08') || unavailableStates.has(code)
    return away ? new DatabaseUnavailableError(`the database is not available (${code})`, { cause: thrown }) : thrown
  }
  if (unreachableCodes.has(code)) return new DatabaseUnavailableError(`the database cannot be reached (${code})`, { cause: thrown })
  // When all addresses of a host refuse, the error is an AggregateError. The driver reports lost connections and timeouts only by their message.
  if (
    /^(Connection terminated|timeout exceeded|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after)/.test(
      thrown.message,
    )
  )
    return new DatabaseUnavailableError(`the database is not available: ${thrown.message}`, { cause: thrown })
  return thrown
}

/** Returns whether the database reported the error for one statement, so that the connection is still usable. */
export function isStatementError(thrown: unknown): boolean {
  return thrown instanceof Error && !(thrown instanceof DatabaseUnavailableError) && 'severity' in thrown
}

/** Returns the channel name if it needs no quoting. Throws an Error otherwise. */
export function checkedChannel(channel: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(channel)) throw new Error(`"${channel}" is not a channel name`)
  return channel
}

interface Listener {
  readonly fn: (payload: string) => void
  readonly onReconnect: (() => void) | undefined
}

/** The listeners of each channel. */
export class Listeners {
  readonly #byChannel = new Map<string, Set<Listener>>()

  /** Adds a listener. `isFirst` is true for the first one of its channel. `remove` removes it and returns true when it was the last one. */
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
