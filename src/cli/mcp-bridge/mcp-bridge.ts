/**
 * Passes MCP messages from stdin on to the gateway over HTTP, and the answers to stdout. It serves clients that start MCP servers as programs.
 * Messages pass unchanged, in both protocol versions. This file handles the differences of the two transports: headers, credentials, cancelling.
 * Decision 0275 says why.
 */
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import { type Called, CommandError, commandErrorOf, exitCodes } from '../command-error.ts'
import { LineWriter, lineMaxBytes, linesOf } from './mcp-bridge-lines.ts'
import { type ClientMessage, fieldAt, jsonOf, messagesOf, protocolHeaders } from './mcp-bridge-message.ts'
import { carryReply, described, transportError } from './mcp-bridge-reply.ts'

export interface BridgeOptions {
  /** The URL of the MCP server. */
  readonly url: string
  /** A `fetch` that adds the credential to each request. */
  readonly fetch: typeof fetch
  readonly called: Called
  readonly input: Readable
  /** The output, which must contain only messages of the protocol. */
  readonly output: Writable
  /** Writes one line for the person who reads the client's log. */
  readonly log: (line: string) => void
  readonly clock: Clock
}

type ClientRequest = Extract<ClientMessage, { kind: 'request' }>

/**
 * Maximum size of a request in bytes. The gateway accepts no larger request, and often closes the connection before its answer is read. So the bridge
 * reports this limit itself.
 */
const requestMaxBytes = 4 * 1024 * 1024
/** Maximum number of concurrent calls. Further calls get an error, so that no queue grows. */
const callsMax = 256
/** How long the bridge waits for pending answers after the end of the input, so that lines from a pipe are answered. */
const graceMs = 1_000

/**
 * Passes messages on until the input ends and its calls are finished or abandoned. Resolves to the exit code. The exit code is 3 when the gateway
 * refuses the credential.
 */
export function runBridge(options: BridgeOptions): Promise<number> {
  return new Bridge(options).run()
}

class Bridge {
  readonly #options: BridgeOptions
  readonly #writer: LineWriter
  /** The running calls by id. A call that listens for changes is marked, because it never ends by itself. */
  readonly #calls = new Map<string | number, { readonly controller: AbortController; readonly isListening: boolean }>()
  readonly #working = new Set<Promise<void>>()
  readonly #end = new AbortController()
  /** The version that `initialize` negotiated. */
  #version: string | null = null
  #isRefused = false
  #lastLogged = ''

  constructor(options: BridgeOptions) {
    this.#options = options
    this.#writer = new LineWriter(options.output, () => {
      this.#end.abort()
      options.input.destroy()
    })
  }

  async run(): Promise<number> {
    try {
      for await (const line of linesOf(this.#options.input)) {
        if (line === null) await this.#say({ code: -32600, message: `A message of more than ${lineMaxBytes / 1024 / 1024} MiB was passed over.` })
        else await this.#takeLine(line)
      }
    } catch (error) {
      // The input is destroyed when the reader of the output has disconnected.
      if (!this.#end.signal.aborted) throw error
    }
    await this.#finish()
    return this.#isRefused ? exitCodes.refused : 0
  }

  async #takeLine(line: string): Promise<void> {
    const messages = messagesOf(line)
    // Text that is not JSON gives the JSON-RPC code for a parse error. Any other invalid message gives the code for an invalid request.
    if (messages === null) return this.#say({ code: jsonOf(line) === undefined ? -32700 : -32600, message: 'The line is no JSON-RPC message.' })
    for (const message of messages) {
      if (message.kind === 'notification' && message.method === 'notifications/cancelled') this.#cancel(message)
      else if (message.kind === 'request') await this.#start(message)
      else this.#track(this.#notify(message))
    }
  }

  #track(work: Promise<void>): void {
    this.#working.add(work)
    work.finally(() => this.#working.delete(work)).catch(() => undefined)
  }

  /** Cancels a call by closing its HTTP reply. The gateway then ends the call in both protocol versions, even if other clients use the same ids. */
  #cancel(message: ClientMessage): void {
    const id = fieldAt(message.value, 'params', 'requestId')
    if (typeof id === 'string' || typeof id === 'number') this.#calls.get(id)?.controller.abort()
  }

  async #start(request: ClientRequest): Promise<void> {
    const refusal = this.#refusalOf(request)
    if (refusal !== null) return this.#writer.write(transportError(request.id, refusal))
    const controller = new AbortController()
    const call = { controller, isListening: request.method === 'subscriptions/listen' }
    this.#calls.set(request.id, call)
    const done = this.#call(request, AbortSignal.any([controller.signal, this.#end.signal])).finally(() => {
      if (this.#calls.get(request.id) === call) this.#calls.delete(request.id)
    })
    this.#track(done)
  }

  /** Returns why a request is not sent. Returns null when it is sent. */
  #refusalOf({ text }: ClientRequest): CommandError | null {
    if (this.#calls.size >= callsMax) return new CommandError(`more than ${callsMax} concurrent calls: wait for some to end.`, { code: 'too_many_calls' })
    if (Buffer.byteLength(text) <= requestMaxBytes) return null
    return new CommandError(`a message of more than ${requestMaxBytes / 1024 / 1024} MiB is more than the gateway takes.`, {
      code: 'payload_too_large',
      status: 413,
    })
  }

  async #call(request: ClientRequest, signal: AbortSignal): Promise<void> {
    const emit = (json: string): Promise<void> => (signal.aborted ? Promise.resolve() : this.#writer.write(json))
    try {
      const answer = await carryReply(await this.#post(request, signal), request.id, emit, this.#options.called)
      if (answer === undefined) throw new Error('the reply ended without an answer')
      const version = request.method === 'initialize' ? fieldAt(answer, 'result', 'protocolVersion') : undefined
      if (typeof version === 'string') this.#version = version
      this.#isRefused = false
    } catch (thrown) {
      if (signal.aborted) return
      const error = commandErrorOf(thrown, this.#options.called)
      this.#note(error)
      await this.#writer.write(transportError(request.id, error))
    }
  }

  /** Sends a notification or an answer. Its result is not passed on, because no client waits for it. */
  async #notify(message: ClientMessage): Promise<void> {
    try {
      await carryReply(await this.#post(message, this.#end.signal), null, () => Promise.resolve(), this.#options.called)
    } catch (thrown) {
      if (!this.#end.signal.aborted) this.#note(commandErrorOf(thrown, this.#options.called))
    }
  }

  #post(message: ClientMessage, signal: AbortSignal): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...protocolHeaders(message, this.#version) }
    return this.#options.fetch(this.#options.url, { method: 'POST', headers, body: message.text, signal })
  }

  #note(error: unknown): void {
    this.#isRefused = error instanceof CommandError && error.exitCode === exitCodes.refused
    const cause = error instanceof Error && !(error instanceof CommandError) ? ` (${error.message})` : ''
    const line = `${described(error).message}${cause}`
    if (line !== this.#lastLogged) this.#options.log(line)
    this.#lastLogged = line
  }

  #say(error: { code: number; message: string }): Promise<void> {
    return this.#writer.write(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
  }

  async #finish(): Promise<void> {
    for (const { controller, isListening } of this.#calls.values()) if (isListening) controller.abort()
    const cancelTimer = this.#options.clock.after(graceMs, () => this.#end.abort())
    const over = new Promise<void>(resolve => this.#end.signal.addEventListener('abort', () => resolve(), { once: true }))
    if (!this.#end.signal.aborted) await Promise.race([Promise.allSettled([...this.#working]), over])
    cancelTimer()
    this.#end.abort()
  }
}
