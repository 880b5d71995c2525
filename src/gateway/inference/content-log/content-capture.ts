import { BodyPieces, keepsMuchMore } from '../../../platform/loop/body-pieces.ts'
import type { NativeRequest } from '../../providers/dialect.ts'
import type { ExactNumbers } from '../../wire/json/exact-numbers.ts'
import { cutJson } from './cut-json.ts'
import { keptBytesOf } from './kept-bytes.ts'

/** A call of an organisation that keeps content. */
export interface ContentCall {
  readonly orgId: number
  readonly requestId: string
  readonly keyId: number
  /** The model for which the call was planned. */
  readonly model: string
  /** The request without router fields, so without a key that came in the body. */
  readonly native: NativeRequest
  /** The length of the received body in bytes. */
  readonly requestBytes: number
  /** The numbers of the body that a double cannot represent. */
  readonly exact?: ExactNumbers | undefined
}

/** The most bytes that are kept of the request and of the reply. The rest is cut off, and the cut is marked. */
const sideMaxBytes = 1024 * 1024

/** The content as a reader of the log gets it. A side that was cut is marked and is not complete JSON. */
export interface Content {
  readonly request: string
  readonly request_truncated: boolean
  /** The bytes that the client received. For a stream these are its events. */
  readonly reply: string
  readonly reply_truncated: boolean
}

/** The approximate memory in bytes of a call without its content. */
const callBytes = 1024

/** Collects the content of one call. It keeps the bytes as they pass, large chunks without a copy, and does not parse them. */
export class ContentCapture {
  readonly call: Pick<ContentCall, 'orgId' | 'requestId' | 'keyId' | 'model'>
  readonly atMs: number
  /** The founder of the organisation when the call began. Its share holds the content. */
  readonly founder: string
  /**
   * The received body, or its object without router fields. An object is written as JSON when the log flushes. A large one, and one with numbers that get
   * their digits back, is written when the call begins. Null when nothing is kept.
   */
  #request: Buffer | NativeRequest['body'] | null
  /** The memory in bytes that the request and this object occupy. A parsed request can occupy much more than the received body. */
  #requestBytes: number
  readonly #requestTruncated: boolean
  readonly #reply = new BodyPieces()
  #replyTruncated = false
  #discarded = false

  constructor({ orgId, requestId, keyId, model, native, requestBytes, exact }: ContentCall, founder: string, atMs: number) {
    this.call = { orgId, requestId, keyId, model }
    this.founder = founder
    this.atMs = atMs
    const isWritten = requestBytes > sideMaxBytes || exact !== undefined
    const bytes = native.bytes === null && isWritten ? jsonOf(native.body, exact) : native.bytes
    this.#requestTruncated = bytes !== null && bytes.length > sideMaxBytes
    // A copy of the kept part frees the memory of a large body.
    if (bytes === null) this.#request = isWritten ? null : native.body
    else this.#request = this.#requestTruncated ? Buffer.from(bytes.subarray(0, sideMaxBytes)) : bytes
    this.#requestBytes = callBytes + (Buffer.isBuffer(this.#request) ? this.#request.length : this.#request === null ? 0 : keptBytesOf(this.#request))
  }

  /** True when nothing of this call may be written any more. */
  get discarded(): boolean {
    return this.#discarded
  }

  /** Drops the content so far. Returns the number of bytes that become free. */
  discard(): number {
    const freed = this.heldBytes
    this.#discarded = true
    this.#request = null
    this.#requestBytes = 0
    this.#reply.drop()
    return freed
  }

  /** The approximate memory in bytes that this call occupies. */
  get heldBytes(): number {
    return this.#requestBytes + this.#reply.bytes
  }

  /** Returns the part of a chunk that still fits. It notes that the reply was cut when a part does not fit. */
  fitting(chunk: Uint8Array): Uint8Array {
    const room = sideMaxBytes - this.#reply.bytes
    if (chunk.length <= room) return chunk
    this.#replyTruncated = true
    // A copy frees the memory of a large reply.
    return Buffer.from(chunk.subarray(0, room))
  }

  /** Keeps a part of the reply. A first part that is a small piece of a large buffer is copied, because only its own length counts. */
  add(part: Uint8Array): void {
    this.#reply.add(this.#reply.bytes === 0 && keepsMuchMore(part) ? Buffer.from(part) : part)
  }

  content(): Content {
    const request = Buffer.isBuffer(this.#request) || this.#request === null ? this.#request : jsonOf(this.#request, undefined)
    return {
      request: request === null ? '' : request.subarray(0, sideMaxBytes).toString('utf8'),
      request_truncated: this.#requestTruncated || request === null || request.length > sideMaxBytes,
      reply: this.#reply.joined().toString('utf8'),
      reply_truncated: this.#replyTruncated,
    }
  }
}

/** Returns the JSON of a body, cut when it is longer than what is kept. Returns null for a body that is nested too deeply to be written. */
function jsonOf(body: NativeRequest['body'], exact: ExactNumbers | undefined): Buffer | null {
  try {
    const text = cutJson(body, sideMaxBytes)
    return Buffer.from(exact?.restored(text) ?? text)
  } catch {
    return null
  }
}
