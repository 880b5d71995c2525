/**
 * Runs flushes in a thread of their own, so that no call waits while a batch is read, added up and sent to the database. When the thread ends, its
 * requests fail as if the database were away, and the next request starts another thread. The journal still has everything. Decision 0530 gives the
 * reasons.
 */
import { MessageChannel, Worker } from 'node:worker_threads'
import type { Clock } from '../../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db } from '../../../../platform/db/db.ts'
import { serveDb } from '../../../../platform/db/thread/db-host.ts'
import { errorOf } from '../../../../platform/db/thread/db-messages.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import type { ChargedEvent } from '../../engine/admission.ts'
import type { AmountsById, FlushAnswer, FlushPort, JournalRange } from '../flush-work.ts'
import type { AdoptionRound } from '../janitor.ts'
import type { JournalRecord } from '../journal-records.ts'
import type { FlushFacts, FlushReply, FlushRequest, FlushThreadStart, FromFlushThread, ToFlushThread } from './messages.ts'

/** The most memory for the objects of the thread, in MiB. A batch needs a tenth of it. */
const heapMaxMib = 256
/** The longest wait for the thread to close its connections. Then it is ended. */
const closeMaxMs = 5000

export interface FlushThreadOptions {
  /** The compiled file that the thread runs. */
  readonly file: string
  readonly folder: string
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly facts: () => FlushFacts
}

interface Waiting {
  readonly done: (answer: FlushReply) => void
  readonly failed: (error: Error) => void
}

/** The thread as the flusher sees it. */
export class FlushThread<E extends ChargedEvent> implements FlushPort<E> {
  readonly #options: FlushThreadOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #lastId = 0
  #isClosing = false

  /** On PostgreSQL the thread starts now, because other processes may soon ask for what this one has leased. Otherwise it starts with the first flush. */
  constructor(options: FlushThreadOptions) {
    this.#options = options
    if (options.db.address !== undefined) this.#thread()
  }

  flush(range: JournalRange): Promise<FlushAnswer> {
    return this.#ask({ kind: 'flush', range }) as Promise<FlushAnswer>
  }

  write(processId: bigint, record: JournalRecord<E>): Promise<FlushAnswer> {
    return this.#ask({ kind: 'write', processId, record }) as Promise<FlushAnswer>
  }

  lost(range: JournalRange): Promise<AmountsById> {
    return this.#ask({ kind: 'lost', range }) as Promise<AmountsById>
  }

  adopt(round: AdoptionRound): Promise<number> {
    return this.#ask({ kind: 'adopt', round }) as Promise<number>
  }

  async close(): Promise<void> {
    const worker = this.#worker
    if (worker === null) return
    this.#isClosing = true
    const exited = new Promise<void>(done => worker.once('exit', () => done()))
    worker.ref()
    worker.postMessage({ kind: 'close' } satisfies ToFlushThread<E>)
    const stopTimer = this.#options.clock.after(closeMaxMs, () => void worker.terminate())
    await exited
    stopTimer()
  }

  #ask(request: FlushRequest<E>): Promise<FlushReply> {
    return new Promise((done, failed) => {
      const worker = this.#thread()
      this.#lastId++
      this.#waiting.set(this.#lastId, { done, failed })
      worker.ref()
      worker.postMessage({ kind: 'ask', id: this.#lastId, request, facts: this.#options.facts() } satisfies ToFlushThread<E>)
    })
  }

  #thread(): Worker {
    if (this.#worker !== null) return this.#worker
    const { file, folder, db } = this.#options
    const channel = db.address === undefined ? new MessageChannel() : null
    if (channel !== null) serveDb(db, channel.port1)
    const start: FlushThreadStart = { folder, address: db.address?.reveal() ?? null, database: channel?.port2 ?? null }
    const worker = new Worker(file, {
      workerData: start,
      transferList: channel === null ? [] : [channel.port2],
      stdout: false,
      stderr: false,
      resourceLimits: { maxOldGenerationSizeMb: heapMaxMib },
    })
    let cause: unknown
    worker.on('message', (message: FromFlushThread) => this.#onMessage(worker, message))
    worker.on('error', error => {
      cause = error
    })
    worker.on('exit', () => this.#onExit(cause))
    // Only a thread that works keeps the process running.
    worker.unref()
    this.#worker = worker
    return worker
  }

  #onMessage(worker: Worker, message: FromFlushThread): void {
    if (message.kind === 'log') {
      const { level, event, fields, error } = message
      this.#options.log[level](event, error === null ? fields : { ...fields, error: errorOf(error) })
      return
    }
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (this.#waiting.size === 0) worker.unref()
    if (message.kind === 'answered') waiting?.done(message.answer)
    else waiting?.failed(errorOf(message.error))
  }

  /** The outcome of the requests is unknown, as after a broken connection. The flusher repeats them. */
  #onExit(cause: unknown): void {
    this.#worker = null
    if (!this.#isClosing) this.#options.log.error('flush_thread_lost', cause === undefined ? {} : { error: cause })
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { failed } of waiting) failed(new DatabaseUnavailableError('the thread that flushes the usage journal ended', { cause }))
  }
}
