import type { Queryable, SqlValue, Statement } from './db.ts'

/** The result of one statement from a driver. */
export interface RawResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
}

/** Runs one statement on a pooled connection, in a transaction, or in the embedded session. */
export type RunStatement = (statement: Statement<readonly SqlValue[], unknown>, params: readonly SqlValue[]) => Promise<RawResult>

/**
 * Implements `many`, `maybe`, `one` and `exec` over a function that runs a statement. A wrong number of rows throws an Error with the
 * statement's name, never with values.
 */
export function queryableOver(run: RunStatement): Queryable {
  const runTyped = <P extends readonly SqlValue[], R>(statement: Statement<P, R>, params: P): Promise<RawResult> =>
    run(statement as unknown as Statement<readonly SqlValue[], unknown>, params)
  return {
    async many<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R[]> {
      return (await runTyped(statement, params)).rows as R[]
    },
    async maybe<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R | null> {
      const { rows } = await runTyped(statement, params)
      if (rows.length > 1) throw new Error(`${statement.name} returned ${rows.length} rows where at most one was expected`)
      return rows.length === 0 ? null : (rows[0] as R)
    },
    async one<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<R> {
      const { rows } = await runTyped(statement, params)
      if (rows.length !== 1) throw new Error(`${statement.name} returned ${rows.length} rows where exactly one was expected`)
      return rows[0] as R
    },
    async exec<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<number> {
      return (await runTyped(statement, params)).rowCount ?? 0
    },
  }
}
