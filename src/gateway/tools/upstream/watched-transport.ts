import type { JSONRPCMessage, StreamableHTTPClientTransport, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import { isObject } from '../../../platform/values/json.ts'
import { isTooDeep } from '../json-bounds.ts'
import type { Exchange } from './exchange.ts'
import { hiddenLists, questionsMax } from './received-lists.ts'
import { UpstreamError } from './upstream-error.ts'

/**
 * The HTTP transport of the SDK with the rules of a gateway. An exchange fails immediately when an answer has an unknown id, when a stream ends without the
 * answer, and when a message is too deep. The SDK alone would wait until the deadline.
 */
export class WatchedTransport implements Transport {
  readonly hasPerRequestStream = true
  readonly #inner: StreamableHTTPClientTransport
  readonly #exchange: Exchange
  /** The ids of requests without an answer. */
  readonly #open = new Set<string | number>()
  readonly #answered = new Set<string | number>()
  /** Messages that are under way, so that the connection is not closed before a cancel has left. */
  readonly #sending = new Set<Promise<void>>()
  /** The last result as it arrived, with its lists. */
  received: Readonly<Record<string, unknown>> = {}
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']

  constructor(inner: StreamableHTTPClientTransport, exchange: Exchange) {
    this.#inner = inner
    this.#exchange = exchange
    inner.onclose = () => this.onclose?.()
    inner.onerror = error => {
      // An error of `send` reaches the sender. Any other one means that a stream cannot be read.
      if (this.#sending.size === 0 && this.#open.size > 0) exchange.fail(new UpstreamError('protocol', 'the stream of the server cannot be read'))
      this.onerror?.(error)
    }
    inner.onmessage = message => this.#receive(message)
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version)
  }

  start(): Promise<void> {
    return this.#inner.start()
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const id = 'method' in message && 'id' in message ? message.id : undefined
    if (id !== undefined) this.#open.add(id)
    if ('method' in message && message.method === 'tools/call') this.#exchange.hasCallBegun = true
    const watched = { ...options, onRequestStreamEnd: () => this.#ended(id) } as Parameters<StreamableHTTPClientTransport['send']>[1]
    const sent = this.#inner.send(message, watched)
    this.#sending.add(sent)
    try {
      await sent
    } finally {
      this.#sending.delete(sent)
    }
  }

  /** Resolves when everything that was given to `send` has left or failed. */
  async whenSent(): Promise<void> {
    await Promise.allSettled([...this.#sending])
  }

  /** Tells a server with sessions that this session is over. */
  endSession(): Promise<void> {
    return this.#inner.terminateSession()
  }

  close(): Promise<void> {
    this.#open.clear()
    return this.#inner.close()
  }

  #receive(message: JSONRPCMessage): void {
    if (isTooDeep(message)) {
      this.#exchange.fail(new UpstreamError('protocol', 'a message of the server is nested too deeply'))
      return
    }
    if (!('method' in message)) {
      const { id } = message
      if (id === undefined || !this.#open.delete(id)) {
        // A second answer changes nothing, because the first one counts.
        if (id !== undefined && this.#answered.has(id)) return
        this.#exchange.fail(new UpstreamError('protocol', 'the server answered a request that was not made'))
        return
      }
      this.#answered.add(id)
      if ('result' in message) {
        const { inputRequests } = message.result
        if (isObject(inputRequests) && Object.keys(inputRequests).length > questionsMax) {
          this.#exchange.fail(new UpstreamError('protocol', `the server asked more than ${questionsMax} questions`))
          return
        }
        this.received = message.result
        this.onmessage?.({ ...message, result: hiddenLists(message.result) } as JSONRPCMessage)
        return
      }
    }
    this.onmessage?.(message)
  }

  #ended(id: string | number | undefined): void {
    if (id !== undefined && this.#open.has(id)) this.#exchange.fail(new UpstreamError('protocol', 'the stream of the server ended without the answer'))
  }
}
