/** Serves the database of the main thread to another thread. The embedded database has one session, so the thread cannot have its own. */
import type { MessagePort } from 'node:worker_threads'
import type { StatementDb, Tx } from '../db.ts'
import { type FromThread, sentError, type ToThread } from './db-messages.ts'

interface OpenTx {
  readonly tx: Tx
  readonly commit: () => void
  readonly rollBack: (reason: Error) => void
}

type Answer = Pick<Extract<ToThread, { kind: 'done' }>, 'rows' | 'count'>

const nothing: Answer = { rows: [], count: 0 }

/** The transactions of one thread. */
class ThreadTransactions {
  readonly #db: StatementDb
  readonly #open = new Map<number, OpenTx>()
  /** Settles when the transaction of that number is over. */
  readonly #ends = new Map<number, Promise<void>>()
  #isOver = false

  constructor(db: StatementDb) {
    this.#db = db
  }

  async answer(request: FromThread): Promise<Answer> {
    if (request.kind === 'begin') await this.#begin(request.tx)
    else if (request.kind === 'end') await this.#end(request.tx, request.isCommit)
    else return await this.#run(request)
    return nothing
  }

  /** Rolls back all open transactions, and those that still wait for the session. The thread has ended. */
  rollBack(): void {
    this.#isOver = true
    for (const { rollBack } of this.#open.values()) rollBack(new Error('the thread of this transaction ended'))
    this.#open.clear()
    this.#ends.clear()
  }

  #begin(number: number): Promise<void> {
    return new Promise((begun, failed) => {
      const end = this.#db.tx(
        tx =>
          new Promise<void>((commit, rollBack) => {
            if (this.#isOver) return rollBack(new Error('the thread of this transaction ended'))
            this.#open.set(number, { tx, commit, rollBack })
            begun()
          }),
      )
      this.#ends.set(number, end)
      end.catch(failed)
    })
  }

  async #end(number: number, isCommit: boolean): Promise<void> {
    const { commit, rollBack } = this.#openTx(number)
    const end = this.#ends.get(number)
    this.#open.delete(number)
    this.#ends.delete(number)
    if (isCommit) {
      commit()
      await end
    } else {
      rollBack(new Error('the thread rolled the transaction back'))
      await end?.catch(() => undefined)
    }
  }

  async #run({ tx, name, text, params, isExec }: Extract<FromThread, { kind: 'run' }>): Promise<Answer> {
    const on = tx === 0 ? this.#db : this.#openTx(tx).tx
    if (isExec) return { rows: [], count: await on.exec({ name, text }, ...params) }
    return { rows: await on.many({ name, text }, ...params), count: 0 }
  }

  #openTx(number: number): OpenTx {
    const found = this.#open.get(number)
    if (found === undefined) throw new Error('the thread named a transaction that is not open')
    return found
  }
}

/** Answers the requests that come over the port. When the thread ends, its port closes, and its open transactions are rolled back. */
export function serveDb(db: StatementDb, port: MessagePort): void {
  const transactions = new ThreadTransactions(db)
  const send = (message: ToThread): void => port.postMessage(message)
  port.on('message', (request: FromThread) => {
    transactions.answer(request).then(
      answer => send({ kind: 'done', id: request.id, ...answer }),
      (error: unknown) => send({ kind: 'failed', id: request.id, error: sentError(error) }),
    )
  })
  port.on('close', () => transactions.rollBack())
  // The port alone does not keep the process running.
  port.unref()
}
