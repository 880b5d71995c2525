import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import type { NativeRequest } from '../../providers/dialect.ts'
import type { ExactNumbers } from '../../wire/json/exact-numbers.ts'

/** A call whose organisation keeps content. */
export interface ContentCall {
  readonly orgId: number
  readonly requestId: string
  readonly keyId: number
  /** The model that the call was planned on. */
  readonly model: string
  /** Without router fields, so without a key that came with the request. */
  readonly native: NativeRequest
  /** Length of the body as it came. */
  readonly requestBytes: number
  /** Its numbers that a double cannot hold. */
  readonly exact?: ExactNumbers | undefined
}

/** Most that is kept of each side of a call; the rest is cut off and marked. */
const sideMaxBytes = 1024 * 1024

/** What a reader of the log gets. A side that was cut is marked and is no complete JSON. */
export interface Content {
  readonly request: string
  readonly request_truncated: boolean
  /** The bytes that went to the client; of a stream the events. */
  readonly reply: string
  readonly reply_truncated: boolean
}

/** Collects one call. Bytes are kept as they pass, large chunks without a copy, and are not read. */
export class ContentCapture {
  readonly call: Pick<ContentCall, 'orgId' | 'requestId' | 'keyId' | 'model'>
  readonly atMs: number
  /** The body as it came, or as it is without router fields; written as JSON when the log has time. */
  readonly #request: Buffer | NativeRequest['body']
  readonly #requestBytes: number
  readonly #exact: ExactNumbers | undefined
  readonly #requestTruncated: boolean
  readonly #reply = new BodyPieces()
  #replyTruncated = false
  #discarded = false

  constructor({ orgId, requestId, keyId, model, native, requestBytes, exact }: ContentCall, atMs: number) {
    this.call = { orgId, requestId, keyId, model }
    this.atMs = atMs
    this.#exact = exact
    this.#requestTruncated = native.bytes !== null && native.bytes.length > sideMaxBytes
    // A copy of the part that is kept lets go of a large body.
    this.#request = native.bytes === null ? native.body : this.#requestTruncated ? Buffer.from(native.bytes.subarray(0, sideMaxBytes)) : native.bytes
    this.#requestBytes = this.#requestTruncated ? sideMaxBytes : requestBytes
  }

  /** True: nothing of this call may be written any more. */
  get discarded(): boolean {
    return this.#discarded
  }

  /** Lets go of the reply so far; how many bytes that frees. */
  discard(): number {
    this.#discarded = true
    const freed = this.#reply.bytes
    this.#reply.drop()
    return freed
  }

  /** Memory that this call keeps from being freed, about. */
  get heldBytes(): number {
    return this.#requestBytes + this.#reply.bytes
  }

  /** Keeps a chunk, or the part of it that still fits; how many bytes. */
  add(chunk: Uint8Array): number {
    const room = sideMaxBytes - this.#reply.bytes
    if (chunk.length > room) this.#replyTruncated = true
    const kept = chunk.length > room ? chunk.subarray(0, room) : chunk
    this.#reply.add(kept)
    return kept.length
  }

  content(): Content {
    const request = Buffer.isBuffer(this.#request) ? this.#request : jsonOf(this.#request, this.#exact)
    return {
      request: request === null ? '' : request.subarray(0, sideMaxBytes).toString('utf8'),
      request_truncated: this.#requestTruncated || request === null || request.length > sideMaxBytes,
      reply: this.#reply.joined().toString('utf8'),
      reply_truncated: this.#replyTruncated,
    }
  }
}

/** Null for what is nested too deeply to be written. */
function jsonOf(body: NativeRequest['body'], exact: ExactNumbers | undefined): Buffer | null {
  try {
    const text = JSON.stringify(body)
    return Buffer.from(exact?.restored(text) ?? text)
  } catch {
    return null
  }
}
