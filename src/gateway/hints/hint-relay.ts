/**
 * Tells the other processes about changes that no row of the database reports: what was spent, deliveries of webhooks, and acts. A process does so only while
 * somebody listens there. A process with open streams says so every few seconds.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { newsChannel } from '../../platform/db/db-control-log.ts'
import type { Log } from '../../platform/observe/log.ts'
import { type Change, changeOf, wordOf } from './change.ts'

export interface RelayDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  /** Names this process among the others. */
  readonly name: string
  /** Returns whether this process has open streams. */
  readonly isListening: () => boolean
  /** Takes a change, of this process or of another one. */
  readonly changed: (change: Change) => void
  /** Is called when notifications of other processes may be lost. */
  readonly onLost: () => void
}

/** Starts a notification of changes: the name of the process, and a word for each change. */
const changesPrefix = 'h:'
/** Starts a notification that the process has open streams. */
const listeningPrefix = 'w:'
/** How often a process with open streams says so, and how long the others believe it. */
const listeningEveryMs = 5_000
const listeningForMs = 15_000
/** Minimum time between two notifications of a process. A notification takes an instance-wide lock at its commit. */
const notifyEveryMs = 250
/** Maximum number of changes that wait for a notification. Beyond it, the others are told that something was spent and that the rest is lost. */
const waitingMax = 1_000
/** Maximum number of bytes of a notification. */
const payloadMaxBytes = 7_500
/** The word of a notification after changes were lost. */
const lostWord = 'lost'

export class HintRelay {
  readonly #deps: RelayDeps
  readonly #hasOthers: boolean
  readonly #waiting = new Set<string>()
  #isOverfull = false
  #othersListenUntilMs = Number.NEGATIVE_INFINITY
  #notifyTimer: (() => void) | null = null
  #stopSaying: (() => void) | null = null
  #stopListening: (() => Promise<void>) | null = null
  #isStopped = false

  constructor(deps: RelayDeps) {
    this.#deps = deps
    // The embedded database belongs to one process.
    this.#hasOthers = deps.db.kind === 'postgres'
  }

  /** True while somebody, in any process, listens. Sources of changes need not report them while it is false. */
  get isWanted(): boolean {
    return this.#deps.isListening() || this.#isWantedElsewhere
  }

  get #isWantedElsewhere(): boolean {
    return this.#hasOthers && this.#deps.clock.monotonicMs() < this.#othersListenUntilMs
  }

  async start(): Promise<void> {
    if (!this.#hasOthers) return
    this.#stopListening = await this.#deps.db.listen(
      newsChannel,
      payload => this.#received(payload),
      () => this.#deps.onLost(),
    )
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopSaying?.()
    this.#notifyTimer?.()
    await this.#stopListening?.()
  }

  /** Gives a change of this process to all listeners. */
  announce(change: Change): void {
    this.#deps.changed(change)
    if (!this.#isWantedElsewhere || this.#isStopped) return
    if (this.#waiting.size < waitingMax) this.#waiting.add(wordOf(change))
    else this.#isOverfull = true
    this.#notifyTimer ??= this.#deps.clock.after(notifyEveryMs, () => {
      this.#notifyTimer = null
      this.#notify()
    })
  }

  /** Tells the other processes whether this one has open streams. Call it when the first stream has come or the last one has gone. */
  follow(): void {
    if (!this.#hasOthers || this.#isStopped) return
    if (!this.#deps.isListening()) {
      this.#stopSaying?.()
      this.#stopSaying = null
      return
    }
    if (this.#stopSaying !== null) return
    this.#send(listeningPrefix + this.#deps.name)
    this.#stopSaying = this.#deps.clock.every(listeningEveryMs, () => this.#send(listeningPrefix + this.#deps.name))
  }

  #notify(): void {
    const words = this.#isOverfull ? [lostWord] : [...this.#waiting]
    this.#waiting.clear()
    this.#isOverfull = false
    const start = `${changesPrefix}${this.#deps.name}`
    let payload = start
    for (const word of words) {
      if (payload.length + 1 + word.length > payloadMaxBytes) {
        this.#send(payload)
        payload = start
      }
      payload += ` ${word}`
    }
    if (payload !== start) this.#send(payload)
  }

  #send(payload: string): void {
    void this.#deps.db.notify(newsChannel, payload).catch((error: unknown) => this.#deps.log.warn('hints_unannounced', { error }))
  }

  #received(payload: string): void {
    const isListening = payload.startsWith(listeningPrefix)
    if (!isListening && !payload.startsWith(changesPrefix)) return
    const [name = '', ...words] = payload.slice(changesPrefix.length).split(' ')
    // A process receives its own notifications too.
    if (name === this.#deps.name) return
    if (isListening) this.#othersListen()
    else for (const word of words) this.#take(word)
  }

  #take(word: string): void {
    if (word === lostWord) {
      this.#deps.onLost()
      return
    }
    const change = changeOf(word)
    if (change !== null) this.#deps.changed(change)
  }

  /** What this process flushed just before it knew of the listener may be missing there, so it reports an unknown spend first. */
  #othersListen(): void {
    const isNew = !this.#isWantedElsewhere
    this.#othersListenUntilMs = this.#deps.clock.monotonicMs() + listeningForMs
    if (isNew) this.announce({ kind: 'spent', orgId: null, id: null })
  }
}
