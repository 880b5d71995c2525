/** The database port in a thread, over the database of the main thread. */
import type { MessagePort } from 'node:worker_threads'
import type { Db, Queryable, SqlValue, Statement, StatementDb, Tx } from '../db.ts'
import { queryableOver, type RawResult } from '../db-queryable.ts'
import { arrayText } from '../postgres/array-text.ts'
import { errorOf, type FromThread, type ToThread } from './db-messages.ts'

type Answer = Extract<ToThread, { kind: 'done' }>
type Request = FromThread extends infer R ? (R extends FromThread ? Omit<R, 'id'> : never) : never

/**
 * Returns the database that `serveDb` serves at the other end of the port. Its errors are those of the main thread. Arrays become text in this
 * thread, because they are the work of a flush.
 */
export function dbOverPort(port: MessagePort, kind: Db['kind']): StatementDb {
  const waiting = new Map<number, { done(answer: Answer): void; failed(error: Error): void }>()
  let lastId = 0
  let lastTx = 0
  port.on('message', (message: ToThread) => {
    const found = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === 'done') found?.done(message)
    else found?.failed(errorOf(message.error))
  })
  const ask = (request: Request): Promise<Answer> =>
    new Promise((done, failed) => {
      lastId++
      waiting.set(lastId, { done, failed })
      port.postMessage({ ...request, id: lastId } as FromThread)
    })
  const queryable = (tx: number): Queryable => {
    const run = ({ name, text }: Statement<readonly SqlValue[], unknown>, params: readonly SqlValue[], isExec: boolean): Promise<Answer> =>
      ask({ kind: 'run', tx, name, text, params: params.map(arrayText) as SqlValue[], isExec })
    return {
      ...queryableOver(async (statement, params): Promise<RawResult> => ({ rows: (await run(statement, params, false)).rows, rowCount: null })),
      async exec<P extends readonly SqlValue[], R>(statement: Statement<P, R>, ...params: P): Promise<number> {
        return (await run(statement as unknown as Statement<readonly SqlValue[], unknown>, params, true)).count
      },
    }
  }
  return {
    kind,
    ...queryable(0),
    async tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
      lastTx++
      const tx = lastTx
      await ask({ kind: 'begin', tx })
      let value: T
      try {
        value = await fn({ inTransaction: true, ...queryable(tx) })
      } catch (error) {
        await ask({ kind: 'end', tx, isCommit: false }).catch(() => undefined)
        throw error
      }
      await ask({ kind: 'end', tx, isCommit: true })
      return value
    },
  }
}
