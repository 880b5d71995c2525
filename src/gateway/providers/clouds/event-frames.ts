/**
 * Reads the binary frames in which Bedrock sends a stream, and writes each event as server-sent events have it. The readers of Anthropic streams then
 * read them like a stream of Anthropic itself. Decision 0870 gives the reasons.
 */
import { createRequire } from 'node:module'
import { crc32 } from 'node:zlib'
import type { EventStreamCodec } from '@smithy/core/event-streams'
import { isObject, parsedObject } from '../../../platform/values/json.ts'
import { refusedCode } from '../../wire/chat/chat-stream.ts'
import { isBoundedJson } from '../../wire/json/json-bounds.ts'
import { GrowingBytes } from '../../wire/sse/growing-bytes.ts'
import { textOf } from '../dialects/json-values.ts'
import type { Provider } from '../provider.ts'
import { withoutAccount } from './account-names.ts'

/** The largest frame that is read, in bytes. The format itself allows 16 MiB for the content of a frame. */
export const frameMaxBytes = 16 * 1024 * 1024
/** A frame begins with two lengths and their checksum. */
const preludeBytes = 12
/** The prelude and the checksum of the whole frame. */
const frameMinBytes = 16
/** The part of an output buffer for the lines before the JSON of an event. The longest name of an event fits. */
const headRoomBytes = 96
/** The most characters of a message that a provider sends as an exception. */
const messageMaxChars = 4096

const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')

/** The codec is loaded at the first stream of Bedrock: a gateway without AWS does not need it. */
let codec: EventStreamCodec | null = null
const load = createRequire(import.meta.url)
function newCodec(): EventStreamCodec {
  const { EventStreamCodec: Codec } = load('@smithy/core/event-streams') as typeof import('@smithy/core/event-streams')
  return new Codec(
    input => (typeof input === 'string' ? input : utf8(input as Uint8Array)),
    text => Buffer.from(text),
  )
}

const payloadStart = Buffer.from('{"bytes":"')
const typeStart = Buffer.from('{"type":"')
const dataStart = 'data: '
const [quote, backslash, lineFeed, carriageReturn, space] = [34, 92, 10, 13, 32]
/** The names of events that are passed on. */
const nameShape = /^[a-z][a-z_]{0,47}$/

/** The lines before the JSON of an event, by the name of the event. Only names of this list are kept, so the map does not grow. */
const heads = new Map(
  ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop', 'ping', 'error'].map(name => [
    name,
    headOf(name),
  ]),
)

function headOf(name: string): Buffer {
  return Buffer.from(`event: ${name}\n${dataStart}`)
}

/** The error types of the messages format for the exceptions of Bedrock. All others are `api_error`. */
const errorTypes: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceQuotaExceededException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  modelNotReadyException: 'overloaded_error',
  validationException: 'invalid_request_error',
  accessDeniedException: 'permission_error',
}

/**
 * Returns a reader when the provider sends its streams in frames and this reply is such a stream. Otherwise returns null. `byok`: the credential is the
 * caller's own, so messages of the provider may name its account.
 */
export function framesOf(provider: Pick<Provider, 'cloud' | 'place'>, contentType: unknown, byok: boolean): EventFrames | null {
  if (provider.cloud !== 'bedrock-invoke' || !String(contentType ?? '').startsWith('application/vnd.amazon.eventstream')) return null
  return byok ? new EventFrames() : new EventFrames(message => withoutAccount(message, provider))
}

const unchanged = (message: string): string => message

/**
 * Joins the pieces of a stream to frames, and checks and reads each frame. The events do not depend on the pieces. A frame with a wrong checksum, or
 * one that is too long, becomes an error event, and nothing after it is read.
 */
export class EventFrames {
  /** The beginning of a frame that is not complete, up to its prelude. */
  readonly #prelude = Buffer.alloc(preludeBytes)
  #preludeLength = 0
  /** An incomplete frame. */
  readonly #frame = new GrowingBytes()
  /** The length of that frame. 0 between two frames. */
  #frameBytes = 0
  #isOver = false
  #events: Uint8Array[] = []
  readonly #mend: (message: string) => string

  /** `mend` returns what the caller may see of a message of the provider. */
  constructor(mend: (message: string) => string = unchanged) {
    this.#mend = mend
  }

  /** The number of bytes that are kept for an incomplete frame. */
  get heldBytes(): number {
    return this.#frame.roomBytes
  }

  /** Returns the events that end in this piece. Null when none does. */
  push(piece: Uint8Array): Uint8Array | null {
    let at = 0
    while (at < piece.length && !this.#isOver) at = this.#step(piece, at)
    const events = this.#events
    if (events.length === 0) return null
    this.#events = []
    return events.length === 1 ? (events[0] ?? null) : Buffer.concat(events)
  }

  /** Reads up to one frame. Returns the offset of the bytes after it. */
  #step(piece: Uint8Array, at: number): number {
    if (this.#frameBytes > 0) return this.#goOn(piece, at)
    const left = piece.length - at
    if (this.#preludeLength > 0 || left < preludeBytes) return this.#beginSplit(piece, at)
    const length = this.#lengthAt(piece, at)
    if (length > left && this.#isPrelude(piece, at)) {
      this.#frameBytes = length
      this.#frame.append(piece.subarray(at))
      return piece.length
    }
    if (length > 0 && !this.#isOver) this.#read(piece.subarray(at, at + length))
    return at + length
  }

  #goOn(piece: Uint8Array, at: number): number {
    const end = Math.min(piece.length, at + this.#frameBytes - this.#frame.length)
    this.#frame.append(piece.subarray(at, end))
    if (this.#frame.length === this.#frameBytes) {
      this.#frameBytes = 0
      this.#read(this.#frame.take())
    }
    return end
  }

  /** Collects a prelude that comes in several pieces. */
  #beginSplit(piece: Uint8Array, at: number): number {
    const end = Math.min(piece.length, at + preludeBytes - this.#preludeLength)
    this.#prelude.set(piece.subarray(at, end), this.#preludeLength)
    this.#preludeLength += end - at
    if (this.#preludeLength < preludeBytes) return end
    this.#preludeLength = 0
    const length = this.#lengthAt(this.#prelude, 0)
    if (length > 0 && this.#isPrelude(this.#prelude, 0)) {
      this.#frameBytes = length
      this.#frame.append(this.#prelude)
    }
    return end
  }

  /** Returns the length of the frame that begins at `at`. Ends the stream and returns 0 when no frame has that length. */
  #lengthAt(bytes: Uint8Array, at: number): number {
    const length = uint32(bytes, at)
    if (length >= frameMinBytes && length <= frameMaxBytes) return length
    if (this.#isPrelude(bytes, at)) this.#refuse(tooLong)
    return 0
  }

  /** Checks the checksum of the lengths, so that a wrong length does not make the gateway wait for bytes that never come. */
  #isPrelude(bytes: Uint8Array, at: number): boolean {
    if (crc32(bytes.subarray(at, at + 8)) === uint32(bytes, at + 8)) return true
    this.#refuse(corrupted)
    return false
  }

  #read(frame: Uint8Array): void {
    let message: ReturnType<EventStreamCodec['decode']>
    try {
      codec ??= newCodec()
      message = codec.decode(frame)
    } catch {
      this.#refuse(corrupted)
      return
    }
    const header = (name: string): string => textOf(message.headers[name]?.value)
    switch (header(':message-type')) {
      case 'event':
        if (header(':event-type') === 'chunk') this.#chunk(message.body)
        return
      case 'exception':
        this.#refuse(errorEvent(errorTypes[header(':exception-type')] ?? 'api_error', this.#mend(messageIn(message.body) || header(':exception-type'))))
        return
      case 'error':
        this.#refuse(errorEvent('api_error', this.#mend(header(':error-message') || header(':error-code'))))
        return
      default:
    }
  }

  #chunk(payload: Uint8Array): void {
    const made = eventOf(payload)
    if (made === null) this.#refuse(unreadable)
    else if (made.length > 0) this.#events.push(made)
  }

  #refuse(event: Uint8Array): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#events.push(event)
  }
}

function uint32(bytes: Uint8Array, at: number): number {
  const [a = 0, b = 0, c = 0, d = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
  return a * 0x1000000 + b * 0x10000 + c * 0x100 + d
}

const noEvent = new Uint8Array()

/**
 * Returns the event in the content of a frame, `{"bytes": "<base64>"}`. An empty result is an event without a name, which means nothing. Null means
 * that the content cannot be read.
 */
function eventOf(payload: Uint8Array): Uint8Array | null {
  const encoded = encodedIn(payload)
  if (encoded === null) return null
  const out = Buffer.allocUnsafe(headRoomBytes + Math.ceil(encoded.length / 4) * 3 + 2)
  const end = headRoomBytes + out.write(encoded, headRoomBytes, 'base64')
  const json = out.subarray(headRoomBytes, end)
  const name = nameIn(json)
  if (name === null) return null
  if (name === '') return noEvent
  // JSON has line ends only between its values, where a space means the same.
  for (const byte of [lineFeed, carriageReturn]) for (let at = json.indexOf(byte); at !== -1; at = json.indexOf(byte, at)) json[at] = space
  const head = heads.get(name) ?? headOf(name)
  const start = headRoomBytes - head.length
  out.set(head, start)
  out[end] = lineFeed
  out[end + 1] = lineFeed
  return out.subarray(start, end + 2)
}

/** Returns the base64 text of a payload. The text is found without parsing when the payload has its usual form. */
function encodedIn(payload: Uint8Array): string | null {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const from = payloadStart.length
  const to = bytes.indexOf(quote, from)
  if (to !== -1 && bytes.subarray(0, from).equals(payloadStart) && !isEscaped(bytes, from, to)) return bytes.toString('latin1', from, to)
  const encoded = isBoundedJson(bytes, 0, bytes.length) ? parsedObject(bytes.toString('utf8'))?.['bytes'] : undefined
  return typeof encoded === 'string' ? encoded : null
}

function isEscaped(bytes: Buffer, from: number, to: number): boolean {
  const at = bytes.indexOf(backslash, from)
  return at !== -1 && at < to
}

/** Returns the `type` of an event. '' when it has none, null when the bytes are no JSON object. */
function nameIn(json: Buffer): string | null {
  const from = typeStart.length
  const to = json.subarray(0, from).equals(typeStart) ? json.indexOf(quote, from) : -1
  const plain = to === -1 || to - from > 48 ? '' : json.toString('latin1', from, to)
  if (heads.has(plain)) return plain
  const event = isBoundedJson(json, 0, json.length) ? parsedObject(json.toString('utf8')) : null
  if (event === null) return null
  const type = textOf(event['type'])
  return nameShape.test(type) ? type : ''
}

function messageIn(payload: Uint8Array): string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const value: unknown = isBoundedJson(bytes, 0, bytes.length) ? parsedObject(bytes.toString('utf8')) : null
  return isObject(value) ? textOf(value['message'] ?? value['originalMessage']).slice(0, messageMaxChars) : ''
}

function errorEvent(type: string, message: string, code?: string): Buffer {
  return Buffer.from(`event: error\n${dataStart}${JSON.stringify({ type: 'error', error: { type, ...(code === undefined ? {} : { code }), message } })}\n\n`)
}

const corrupted = errorEvent('api_error', 'The provider sent a frame with a wrong checksum.')
const unreadable = errorEvent('api_error', 'The provider sent a frame that cannot be read.')
const tooLong = errorEvent('api_error', `The provider sent a frame that is too long: at most ${frameMaxBytes} bytes are read.`, refusedCode)
