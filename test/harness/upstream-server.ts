import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { defaultUsage, formatOf, wantsStream } from './upstream-formats.ts'

export { defaultUsage }

/** A request as the provider received it. */
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body byte for byte. */
  readonly raw: Buffer
  /** The body as JSON, or null. */
  readonly json: Record<string, unknown> | null
  /** True when the client closed the connection before the answer was complete. */
  aborted: boolean
  /** Resolves when the answer is complete or the connection has broken. */
  readonly closed: Promise<void>
}

/** One scripted answer. Fields can be combined. An empty script gives the default answer. */
export interface UpstreamScript {
  /** Answers with this status and `body` instead of a completion. */
  readonly status?: number
  /** A JSON value, or text that is sent as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Accepts the request and breaks the connection without sending a byte. */
  readonly reset?: boolean
  /** Breaks the connection inside the reply's headers. */
  readonly closeMidHeaders?: boolean
  /** Never answers. */
  readonly hang?: boolean
  /** Waits for `release()` before the first byte. */
  readonly hold?: boolean
  /** Waits for `release()` after this number of content chunks of the stream. */
  readonly holdAfterChunks?: number
  /** Breaks the stream after this number of content chunks. */
  readonly breakAfterChunks?: number
  /** Sends an error frame after this number of content chunks and ends the stream. */
  readonly errorFrameAfterChunks?: number
  readonly chunkIntervalMs?: number
  /** The usage block, in the format of the request. Null: no usage is reported. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  /** The content of the answer. Each entry is one chunk. */
  readonly chunks?: readonly string[]
  /** The raw bytes of the whole event stream. They replace the normal answer to any request. */
  readonly rawStream?: Iterable<string | Uint8Array>
  /** Waits for `release()` after this number of parts of `rawStream`. */
  readonly holdAfterRawParts?: number
  /** Waits for `release()` after `rawStream`. */
  readonly holdAfterRaw?: boolean
  /** Breaks the connection after `rawStream`. */
  readonly breakAfterRaw?: boolean
}

export interface UpstreamServer {
  /** Ends in /v1. */
  readonly url: string
  readonly requests: RecordedRequest[]
  /** Queues answers for the next requests, or sets a function that decides for every request. When the queue is empty, the default answer is sent. */
  script(next: UpstreamScript | readonly UpstreamScript[] | ((request: RecordedRequest) => UpstreamScript)): void
  /** Makes every request wait before its first byte from now on. */
  hold(): void
  /** Continues all waiting requests, and ends `hold`. */
  release(): void
  /** Resolves when `count` requests have arrived in total. Rejects after the deadline. */
  arrived(count: number, deadlineMs?: number): Promise<void>
  /** Forgets requests and scripts, and continues all waiting requests. */
  reset(): void
  close(): Promise<void>
}

/** The content of the default answer. Each entry is one chunk. */
export const defaultChunks = ['Hello', ' from', ' the', ' test', ' upstream']

/**
 * Starts an HTTP server that acts as a provider, with failures on request. The path of a request decides the format of the answer: OpenAI chat and
 * embeddings, Anthropic messages (and count_tokens), Gemini, OpenAI responses.
 */
export async function startUpstream(): Promise<UpstreamServer> {
  const state = new State()
  const server = createServer((request, response) => {
    play(state, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: state.requests,
    script: next => state.script(next),
    hold: () => state.gate.hold(),
    release: () => state.gate.release(),
    reset: () => state.reset(),
    arrived: (count, deadlineMs = 5000) => state.arrived(count, deadlineMs),
    close: () =>
      new Promise(resolve => {
        state.gate.release()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

class Gate {
  held = false
  #waiting: (() => void)[] = []
  hold(): void {
    this.held = true
  }
  release(): void {
    this.held = false
    for (const go of this.#waiting.splice(0)) go()
  }
  wait(): Promise<void> {
    return new Promise(resolve => this.#waiting.push(resolve))
  }
}

class State {
  readonly requests: RecordedRequest[] = []
  readonly gate = new Gate()
  #queue: UpstreamScript[] = []
  #decide: ((request: RecordedRequest) => UpstreamScript) | null = null
  #watchers = new Set<() => void>()

  script(next: UpstreamScript | readonly UpstreamScript[] | ((request: RecordedRequest) => UpstreamScript)): void {
    if (typeof next === 'function') this.#decide = next
    else this.#queue.push(...(Array.isArray(next) ? (next as readonly UpstreamScript[]) : [next as UpstreamScript]))
  }

  reset(): void {
    this.requests.length = 0
    this.#queue = []
    this.#decide = null
    this.gate.release()
  }

  take(request: RecordedRequest): UpstreamScript {
    this.requests.push(request)
    for (const watcher of this.#watchers) watcher()
    return this.#queue.shift() ?? this.#decide?.(request) ?? {}
  }

  arrived(count: number, deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#watchers.delete(check)
        reject(new Error(`${this.requests.length} of ${count} requests arrived`))
      }, deadlineMs)
      const check = (): void => {
        if (this.requests.length < count) return
        clearTimeout(timer)
        this.#watchers.delete(check)
        resolve()
      }
      this.#watchers.add(check)
      check()
    })
  }
}

async function play(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const recorded = await record(request, response)
  const script = state.take(recorded)
  if (script.reset) return void request.socket.destroy()
  if (script.hang) return
  if (script.hold || state.gate.held) await state.gate.wait()
  if (script.closeMidHeaders) return void request.socket.write('HTTP/1.1 200 OK\r\ncontent-ty', () => request.socket.destroy())
  if (script.status !== undefined || script.body !== undefined)
    return answer(response, script.status ?? 200, script.body ?? { error: { message: 'scripted failure', type: 'server_error', code: null } }, script.headers)
  if (recorded.path.split('?')[0] === '/v1/models')
    return answer(response, 200, { object: 'list', data: [{ id: 'test-model', object: 'model', created: 0, owned_by: 'test' }] })
  if (recorded.path === '/v1/embeddings') return answer(response, 200, embeddings(recorded, script), script.headers)
  if (recorded.path.endsWith('/count_tokens')) return answer(response, 200, { input_tokens: 12 }, script.headers)
  if (script.rawStream !== undefined || wantsStream(recorded)) return await stream(state, recorded, response, script)
  const usage = script.usage === undefined ? defaultUsage : script.usage
  answer(response, 200, formatOf(recorded.path).whole(recorded, (script.chunks ?? defaultChunks).join(''), usage), script.headers)
}

async function record(request: IncomingMessage, response: ServerResponse): Promise<RecordedRequest> {
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  const raw = Buffer.concat(parts)
  let done = (): void => {}
  const recorded: RecordedRequest = {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    raw,
    json: parse(raw),
    aborted: false,
    closed: new Promise<void>(resolve => {
      done = resolve
    }),
  }
  response.once('close', () => {
    recorded.aborted = !response.writableFinished
    done()
  })
  return recorded
}

function parse(raw: Buffer): Record<string, unknown> | null {
  try {
    return JSON.parse(raw.toString('utf8')) as Record<string, unknown>
  } catch {
    return null
  }
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response
    .writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json', 'content-length': Buffer.byteLength(text), ...headers })
    .end(text)
}

function usageOf(script: UpstreamScript, standard: Record<string, unknown>): Record<string, unknown> {
  return script.usage === null ? {} : { usage: script.usage ?? standard }
}

function embeddings(request: RecordedRequest, script: UpstreamScript): unknown {
  const input = request.json?.['input']
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input]
  const data = texts.map((_, index) => ({ object: 'embedding', index, embedding: [1, 0, 0, index] }))
  return { object: 'list', model: request.json?.['model'], data, ...usageOf(script, { prompt_tokens: 7, total_tokens: 7 }) }
}

async function stream(state: State, request: RecordedRequest, response: ServerResponse, script: UpstreamScript): Promise<void> {
  const write = (text: string | Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => response.write(text, error => (error ? reject(error) : resolve())))
  response.writeHead(200, { 'content-type': 'text/event-stream', ...script.headers })
  if (script.rawStream !== undefined) {
    let written = 0
    for (const part of script.rawStream) {
      if (written++ === script.holdAfterRawParts) await state.gate.wait()
      await write(part)
    }
    if (script.holdAfterRaw) await state.gate.wait()
    return void (script.breakAfterRaw ? response.destroy() : response.end())
  }
  const format = formatOf(request.path)
  const opening = format.start(request)
  if (opening !== '') await write(opening)
  let sent = 0
  for (const content of [...(script.chunks ?? defaultChunks), null]) {
    if (sent === script.holdAfterChunks) await state.gate.wait()
    if (sent === script.breakAfterChunks) return void response.destroy()
    if (sent === script.errorFrameAfterChunks) return void response.end(format.errorFrame)
    if (content === null) break
    if (script.chunkIntervalMs !== undefined) await pause(script.chunkIntervalMs)
    await write(format.content(request, content, sent))
    sent++
  }
  response.end(format.end(request, script.usage === undefined ? defaultUsage : script.usage))
}
