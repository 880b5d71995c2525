import { refusedCode } from '../chat/chat-stream.ts'
import { isBoundedJson } from '../json/json-bounds.ts'
import { LineEnds } from './line-ends.ts'
import { type LineSink, SseLineScanner } from './sse-lines.ts'

/** One event of a stream: its name, when it has one, and its data lines joined. A comment has no data. */
export type SseEvent = { readonly kind: 'event'; readonly name: string | undefined; readonly data: string } | { readonly kind: 'comment' }

/** Longest event: more than any picture inside a reply, which comes in one line, and no danger to the memory of all. */
export const eventMaxBytes = 40 * 1024 * 1024
/** Longest event of a server that somebody has registered. */
export const ownEventMaxBytes = 1024 * 1024
/** Most bytes of an event in several lines of data: no provider writes what is long so. */
const joinedMaxBytes = 1024 * 1024
/** Most lines of data of an event. */
const dataLinesMax = 10_000

/** Replaces an event that is not read: an error in the words of every format. Later events are not read either. */
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
 * Cuts the bytes of an event stream into events, over any chunking, line ends and byte order mark. It takes time by the bytes alone, and
 * memory up to the bounds above, whatever a stream is made of.
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

  /** An event was refused: nothing that follows is read. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Bytes that are kept of the event under way. */
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

  /** The bytes have ended: the last event may lack its blank line. */
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
    else if (isField(bytes, from, end, eventName)) this.#name = textOf(bytes, valueAt(bytes, from + eventName.length, end), end) || undefined
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

/** A line of a field: its name alone, or its name and a colon. */
function isField(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  return startsWith(bytes, start, end, name) && (start + name.length === end || bytes[start + name.length] === 58)
}

/** Where the value begins after the name: one space after the colon is no part of it. */
function valueAt(bytes: Uint8Array, colon: number, end: number): number {
  if (colon === end) return end
  return bytes[colon + 1] === 32 && colon + 1 < end ? colon + 2 : colon + 1
}

const textOf = (bytes: Uint8Array, start: number, end: number): string => Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

function isBoundedText(text: string): boolean {
  const bytes = Buffer.from(text)
  return isBoundedJson(bytes, 0, bytes.length)
}
