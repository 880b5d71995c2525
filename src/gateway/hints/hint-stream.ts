import type { StreamSink } from '../../platform/loop/stream-sink.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'

/** Maximum number of topics that a stream sends in a second. Beyond it, topics of one family are sent as the family, such as `agent` for `agent:7`. */
export const topicsMax = 64
/** A topic is sent at most once in this time. */
export const sameTopicMs = 1_000

/** The topic that means: hints may be lost, so read again whatever is shown. */
export const resetTopic = 'reset'
/** The last topic of a stream whose session has ended, has another role, or works in another organisation. */
const sessionTopic = 'session'

const familyOf = (topic: string): string => topic.split(':', 1)[0] ?? topic
const frameOf = (topic: string): string => `data: ${JSON.stringify({ topic })}\n\n`

/**
 * One stream of hints. It keeps at most `topicsMax` topics that wait, whatever the number of changes is. While its reader takes nothing, it sends nothing
 * and keeps these topics.
 */
export class HintStream {
  readonly principal: SessionPrincipal
  readonly #waiting = new Set<string>()
  readonly #sentAtMs = new Map<string, number>()
  #sink: StreamSink | null = null
  /** True until the reply begins, and while the reader has more bytes than it takes. */
  #isFull = true
  #isOver = false
  #onRoom: () => void = () => undefined
  #end: () => void = () => undefined

  constructor(principal: SessionPrincipal) {
    this.principal = principal
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** True while a topic waits that the reader could take. */
  get hasWaiting(): boolean {
    return !this.#isOver && !this.#isFull && this.#waiting.size > 0
  }

  /** Sends the stream until it ends. `onRoom` is called when the reader takes bytes again after it had too many. */
  pump(sink: StreamSink, onRoom: () => void): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    this.#sink = sink
    this.#isFull = false
    this.#onRoom = onRoom
    this.#push(': connected\n\n')
    onRoom()
    return new Promise(resolve => {
      this.#end = resolve
    })
  }

  add(topic: string): void {
    if (this.#waiting.has(resetTopic)) return
    if (topic === resetTopic) this.#waiting.clear()
    this.#waiting.add(topic)
    if (this.#waiting.size > topicsMax) this.#widen()
  }

  /** Returns whether a topic may be sent now. */
  isDue(nowMs: number): boolean {
    if (!this.hasWaiting) return false
    for (const topic of this.#waiting) if (this.#mayGo(topic, nowMs)) return true
    return false
  }

  /** Sends the topics that may be sent now. The caller has checked the session. */
  send(nowMs: number): void {
    if (this.#isOver || this.#isFull) return
    for (const [topic, atMs] of this.#sentAtMs) if (nowMs - atMs >= sameTopicMs) this.#sentAtMs.delete(topic)
    // There are few families, so they always have room.
    if (this.#sentAtMs.size + this.#waiting.size > topicsMax) this.#widen()
    const due = [...this.#waiting].filter(topic => this.#mayGo(topic, nowMs))
    for (const topic of due) {
      this.#waiting.delete(topic)
      this.#sentAtMs.set(topic, nowMs)
    }
    if (due.length > 0) this.#push(due.map(frameOf).join(''))
  }

  /** Ends the stream. With `isOfSession`, its last hint says that the session has changed. */
  end(isOfSession = false): void {
    if (this.#isOver) return
    if (isOfSession) this.#push(frameOf(sessionTopic))
    this.#isOver = true
    this.#waiting.clear()
    this.#end()
  }

  #mayGo(topic: string, nowMs: number): boolean {
    const sentAtMs = this.#sentAtMs.get(topic)
    return sentAtMs === undefined || nowMs - sentAtMs >= sameTopicMs
  }

  #widen(): void {
    const families = new Set([...this.#waiting].map(familyOf))
    this.#waiting.clear()
    for (const family of families) this.#waiting.add(family)
  }

  #push(text: string): void {
    const sink = this.#sink
    if (sink === null || sink.isGone || sink.push(Buffer.from(text))) return
    this.#isFull = true
    void sink.room().then(() => {
      this.#isFull = false
      this.#onRoom()
    })
  }
}
