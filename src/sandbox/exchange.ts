import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/values/ids.ts'

/** The largest request body that the sandbox reads, in bytes. */
const bodyMaxBytes = 64 * 1024 * 1024

/** One request to the sandbox, and the methods that answer it. */
export class Exchange {
  readonly clock: Clock
  readonly ids: Ids
  /** Aborts when the client disconnects. */
  readonly gone: AbortSignal
  readonly #request: IncomingMessage
  readonly #response: ServerResponse

  constructor(request: IncomingMessage, response: ServerResponse, clock: Clock, ids: Ids) {
    this.#request = request
    this.#response = response
    this.clock = clock
    this.ids = ids
    const closed = new AbortController()
    this.gone = closed.signal
    response.once('close', () => closed.abort(new Error('the client is gone')))
  }

  /** The host name and port to which the client sent the request. */
  get host(): string {
    return this.#request.headers.host ?? 'localhost'
  }

  get contentType(): string {
    return this.#request.headers['content-type'] ?? ''
  }

  /** Returns the body unchanged, or an empty buffer if it is too large. */
  async raw(): Promise<Buffer> {
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of this.#request as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > bodyMaxBytes) return Buffer.alloc(0)
      parts.push(part)
    }
    return Buffer.concat(parts)
  }

  /** Returns the body as a JSON object, or null if it is not one. */
  async body(): Promise<Record<string, unknown> | null> {
    try {
      return objectOrNull(JSON.parse((await this.raw()).toString('utf8')))
    } catch {
      return null
    }
  }

  json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
    const text = JSON.stringify(value)
    this.#response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }).end(text)
  }

  text(text: string, contentType: string): void {
    this.#response.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) }).end(text)
  }

  bytes(bytes: Uint8Array, contentType: string): void {
    this.#response.writeHead(200, { 'content-type': contentType, 'content-length': bytes.length }).end(bytes)
  }

  /** Begins a reply whose bytes are written in several pieces. */
  beginBytes(contentType: string): void {
    this.#response.writeHead(200, { 'content-type': contentType })
    this.#response.flushHeaders()
  }

  /** Begins an event stream. */
  beginStream(): void {
    this.#response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    this.#response.flushHeaders()
  }

  /** Writes to the stream, and waits while the client does not read. Rejects if the client has disconnected. */
  async write(text: string | Uint8Array): Promise<void> {
    this.gone.throwIfAborted()
    if (!this.#response.write(text)) await once(this.#response, 'drain', { signal: this.gone })
  }

  end(): void {
    this.#response.end()
  }

  /** Breaks the connection after the bytes that are already written, as a crashing provider does. */
  async break(): Promise<void> {
    this.gone.throwIfAborted()
    // The callback of `write` runs when the kernel has the bytes. If the connection is destroyed earlier, they can be lost.
    if (this.#response.headersSent) await new Promise<void>(resolve => this.#response.write('', () => resolve()))
    this.#response.destroy()
  }

  /** Sends no answer until the client disconnects. */
  async hang(): Promise<void> {
    if (!this.gone.aborted) await once(this.gone, 'abort')
  }
}

/** Returns the value if it is a plain JSON object, else null. */
export function objectOrNull(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
}

/** Returns the text of a message's content and the number of its images. The content is a string, or an array whose text parts are joined by spaces. */
export function contentOf(content: unknown): { text: string; lastText: string; images: number } {
  if (typeof content === 'string') return { text: content, lastText: content, images: 0 }
  if (!Array.isArray(content)) return { text: '', lastText: '', images: 0 }
  const texts: string[] = []
  let images = 0
  for (const item of content) {
    const part = objectOrNull(item)
    if (typeof part?.['text'] === 'string') texts.push(part['text'])
    if (part?.['type'] === 'image_url' || part?.['type'] === 'image' || part?.['type'] === 'input_image') images++
  }
  return { text: texts.join(' '), lastText: texts.at(-1) ?? '', images }
}
