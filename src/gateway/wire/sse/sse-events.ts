import { refusedCode } from '../chat/chat-stream.ts'
import { isBoundedJson } from '../json/json-bounds.ts'
import { LineEnds } from './line-ends.ts'
import { type LineSink, SseLineScanner } from './sse-lines.ts'

/** One event of a stream: its name, if it has one, and its joined data lines. A comment has no data. */
export type SseEvent = { readonly kind: 'event'; readonly name: string | undefined; readonly data: string } | { readonly kind: 'comment' }

/** Maximum size of an event. A picture inside a reply is one line and must fit, and the process must not run out of memory. */
export const eventMaxBytes = 40 * 1024 * 1024
/** Maximum size of an event of an own server. */
export const ownEventMaxBytes = 1024 * 1024
/** Maximum number of bytes of an event that has several data lines. No provider writes long data in this way. */
const joinedMaxBytes = 1024 * 1024
/** Maximum number of data lines of an event. */
const dataLinesMax = 10_000
/** Maximum number of bytes of the name of an event. */
const nameMaxBytes = 256

/** Returns the event that replaces a refused one: an error that the decoder of every dialect understands. Later events are not read. */
const refused = (message: string): SseEvent => ({
  kind: 'event',
  name: 'error',
  data: JSON.stringify({ type: 'error', error: { type: 'api_error', code: refusedCode, message } }),
})
const tooLong = refused('The provider sent an event that is too long.')
const tooDeep = refused('The provider sent an event that is nested too deeply or has too many values.')

const eventEnd = Buffer.from('\n\n')
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const dataName = Buffer.from('data')
const eventName = Buffer.from('event')
const comment: SseEvent = { kind: 'comment' }

/**
 * Splits the bytes of an event stream into events. The events do not depend on the chunks, the kind of line ends, or a byte order mark. Its time depends
 * only on the number of bytes, and its memory is bounded by the constants above, whatever the stream contains.
 */
export class SseEventReader implements LineSink {
  readonly #maxBytes: number
  readonly #lines: SseLineScanner
  readonly #lineEnds = new LineEnds()
  #found: SseEvent[] = []
  #isOver = false
  #isFirstLine = true
  #name: string | undefined
  #data: string[] = []
  #dataBytes = 0

  constructor(maxBytes = eventMaxBytes) {
    this.#maxBytes = maxBytes
    this.#lines = new SseLineScanner(this, maxBytes)
  }

  /** True: an event was refused. Later bytes are not read. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** True if the bytes so far end exactly between two events. */
  get atBoundary(): boolean {
    return !this.#isOver && this.#lines.atBoundary && !this.#lineEnds.isOpen
  }

  /** The number of bytes that are kept for the unfinished event. */
  get heldBytes(): number {
    return this.#lines.heldBytes + this.#dataBytes
  }

  push(bytes: Uint8Array): readonly SseEvent[] {
    if (this.#isOver) return []
    this.#lines.push(this.#lineEnds.read(bytes))
    const found = this.#found
    this.#found = []
    return found
  }

  /** Notes events that were read without this reader, each with one line of content. */
  passed(events: number): void {
    this.#lines.passed(events)
  }

  /** Ends the stream. The last event may lack its blank line. */
  end(): readonly SseEvent[] {
    return this.push(eventEnd)
  }

  line(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isOver) return
    const from = this.#isFirstLine && startsWith(bytes, start, end, byteOrderMark) ? start + byteOrderMark.length : start
    this.#isFirstLine = false
    if (from === end) this.#dispatch()
    else if (bytes[from] === 58) this.#found.push(comment)
    else if (isField(bytes, from, end, dataName)) this.#addData(bytes, valueAt(bytes, from + dataName.length, end), end)
    else if (isField(bytes, from, end, eventName)) this.#name = nameOf(bytes, valueAt(bytes, from + eventName.length, end), end)
  }

  overlong(): void {
    this.#refuse(tooLong)
  }

  #addData(bytes: Uint8Array, start: number, end: number): void {
    this.#dataBytes += end - start
    const isJoined = this.#data.length > 0
    if (this.#dataBytes > this.#maxBytes || (isJoined && (this.#dataBytes > joinedMaxBytes || this.#data.length >= dataLinesMax))) this.#refuse(tooLong)
    else if (!isBoundedJson(bytes, start, end)) this.#refuse(tooDeep)
    else this.#data.push(textOf(bytes, start, end))
  }

  #dispatch(): void {
    const data = this.#data
    const [only] = data
    const name = this.#name
    this.#name = undefined
    if (only === undefined) return
    const isJoined = data.length > 1
    const text = isJoined ? data.join('\n') : only
    this.#data = []
    this.#dataBytes = 0
    if (isJoined && !isBoundedText(text)) this.#refuse(tooDeep)
    else this.#found.push({ kind: 'event', name, data: text })
  }

  #refuse(event: SseEvent): void {
    if (!this.#isOver) this.#found.push(event)
    this.#isOver = true
    this.#data = []
  }
}

function startsWith(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start < word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false
  return true
}

/** True if the line has this field: the name alone, or the name and a colon. */
function isField(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  return startsWith(bytes, start, end, name) && (start + name.length === end || bytes[start + name.length] === 58)
}

/** Returns the offset of the value after the name. One space after the colon is not part of the value. */
function valueAt(bytes: Uint8Array, colon: number, end: number): number {
  if (colon === end) return end
  return bytes[colon + 1] === 32 && colon + 1 < end ? colon + 2 : colon + 1
}

const nameOf = (bytes: Uint8Array, start: number, end: number): string | undefined =>
  end - start > nameMaxBytes ? undefined : textOf(bytes, start, end) || undefined

const textOf = (bytes: Uint8Array, start: number, end: number): string => Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

function isBoundedText(text: string): boolean {
  const bytes = Buffer.from(text)
  return isBoundedJson(bytes, 0, bytes.length)
}
