import { connection, leaving, session } from '../connection.ts'
import { apiQuery, queryClient } from '../queries.ts'
import { resetTopic } from './topics.ts'

/** What a source reports. */
export interface HintListener {
  onTopic(topic: string): void
  onState(isOpen: boolean): void
}

const waitMinMs = 1_000
const waitMaxMs = 30_000
/** What changes between the first reads of a page and its stream is read this long after the stream has opened. */
const catchUpMs = 15_000

/**
 * The stream of hints. When it breaks, it first asks whether the gateway answers and the session is good, and then connects again: after half a second to one and
 * a half, then after up to twice as long each time, at most 30 seconds. A session that has ended waits until the person has signed in again.
 */
export class HintSource {
  readonly #listener: HintListener
  #source: EventSource | null = null
  #timer: ReturnType<typeof setTimeout> | null = null
  #failures = 0
  #isFirst = true
  #isStopped = false
  #endSession: () => void = () => undefined

  /** `isFirst` is false when hints may have been lost before, because another tab had the stream. */
  constructor(listener: HintListener, isFirst: boolean) {
    this.#listener = listener
    this.#isFirst = isFirst
  }

  start(): void {
    this.#endSession = session.subscribe(() => {
      if (session.get() === 'active' && this.#source === null) this.#plan(0)
    })
    this.#connect()
  }

  stop(): void {
    this.#isStopped = true
    this.#endSession()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#source?.close()
    this.#source = null
    this.#listener.onState(false)
  }

  #connect(): void {
    if (this.#isStopped || this.#source !== null) return
    const source = new EventSource('/me/events')
    this.#source = source
    source.onopen = () => this.#opened()
    source.onmessage = (event: MessageEvent<string>) => this.#received(event.data)
    source.onerror = () => {
      source.close()
      if (this.#source === source) this.#broken()
    }
  }

  #opened(): void {
    this.#failures = 0
    connection.set('online')
    this.#listener.onState(true)
    if (this.#isFirst) setTimeout(() => this.#isStopped || this.#listener.onTopic(resetTopic), catchUpMs)
    else this.#listener.onTopic(resetTopic)
    this.#isFirst = false
  }

  #received(text: string): void {
    const { topic } = JSON.parse(text) as { topic?: unknown }
    if (typeof topic === 'string') this.#listener.onTopic(topic)
  }

  #broken(): void {
    this.#source = null
    this.#isFirst = false
    this.#listener.onState(false)
    const waitMs = Math.min(waitMinMs * 2 ** this.#failures, waitMaxMs)
    this.#failures++
    this.#plan(waitMs * (0.5 + Math.random()))
  }

  #plan(waitMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#tryAgain()
    }, waitMs)
  }

  /** An EventSource does not say why it was refused, so an ordinary request asks first. It opens the dialog of a session that has ended. */
  async #tryAgain(): Promise<void> {
    if (leaving.get()) this.#broken()
    if (leaving.get() || session.get() === 'ended') return
    const me = await queryClient.fetchQuery({ ...apiQuery('me'), staleTime: 0, retry: false }).catch(() => null)
    if (me !== null) this.#connect()
    else if (session.get() === 'active') this.#broken()
  }
}
