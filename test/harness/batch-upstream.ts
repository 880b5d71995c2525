/** A provider with the batch APIs of OpenAI and Anthropic, over real HTTP. It counts what it answers, so that a test can compare sums. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../../src/platform/clock.ts'
import { fieldsOf } from './file-upstream.ts'

/** Tokens of one answer. */
interface Tokens {
  readonly input: number
  readonly output: number
}

interface RemoteBatch {
  readonly id: string
  readonly format: 'openai' | 'anthropic'
  readonly lines: readonly RequestLine[]
  readonly metadata: Record<string, string>
  status: string
  outputFileId: string | null
  readonly madeMs: number
}

interface RequestLine {
  readonly custom_id: string
  readonly body: Record<string, unknown>
}

export interface BatchUpstream {
  /** Ends in /v1. */
  readonly url: string
  /** Method and path of every request, with the credential. */
  readonly requests: { readonly method: string; readonly path: string; readonly credential: string }[]
  /** The bytes of uploaded files by id. */
  readonly files: Map<string, string>
  readonly batches: Map<string, RemoteBatch>
  /** The batches on one page of a list. */
  pageSize: number
  /** Ends every batch that runs. The answers of `done` requests are there; the others have failed. Default: all are done. */
  finish(done?: number, status?: string): void
  /** Tokens of all answers so far. */
  readonly totals: { input: number; output: number; answers: number }
  /** Makes results that contain `text` stop after half of their bytes, until `release`. */
  holdResults(text?: string): void
  /** Makes calls that are no batch wait for `release`. They are answered with 404. */
  holdCalls(): void
  release(): void
  /** Answers the next request whose path starts so with a status and nothing done, or with `afterwards` when it is done. */
  failNext(path: string, status: number, afterwards?: boolean): void
  /** Answers the next batch of messages with a status while its body is still under way. */
  refuseEarly(status: number): void
  /** How many batches were refused so. */
  readonly early: { refused: number }
  /** Answers every request whose method and path contain the text with a status and nothing done. An empty text ends that. */
  failAlways(path: string, status: number): void
  /** The results of batches that end from now on are not JSON. */
  breakResults(isBroken: boolean): void
  close(): Promise<void>
}

/** The tokens that an answer has: those that the test can compute too. */
export const tokensOf = (customId: string, body: Readonly<Record<string, unknown>>): Tokens => ({
  input: 100 + customId.length,
  output: Number(body['max_tokens'] ?? body['max_completion_tokens'] ?? body['max_output_tokens'] ?? 0),
})

export async function startBatchUpstream(): Promise<BatchUpstream> {
  const state = new State()
  const server = createServer((request, response) => {
    state.serve(request, response).catch(error => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

class State {
  readonly requests: { method: string; path: string; credential: string }[] = []
  readonly files = new Map<string, string>()
  readonly batches = new Map<string, RemoteBatch>()
  pageSize = 100
  readonly totals = { input: 0, output: 0, answers: 0 }
  #made = 0
  #held: Promise<void> | null = null
  #heldText = ''
  #callsWait = false
  #release = (): void => {}
  #isBroken = false
  readonly early = { refused: 0 }
  #earlyStatus = 0
  #failing = { path: '', status: 0 }
  readonly #failures: { path: string; status: number; afterwards: boolean }[] = []

  finish(done = Number.POSITIVE_INFINITY, status = 'completed'): void {
    for (const batch of this.batches.values()) {
      if (batch.status !== 'in_progress') continue
      batch.status = batch.format === 'openai' ? status : 'ended'
      batch.outputFileId = this.#results(batch, done)
    }
  }

  holdResults(text = ''): void {
    this.#heldText = text
    this.#held = new Promise(resolve => {
      this.#release = resolve
    })
  }

  holdCalls(): void {
    this.holdResults()
    this.#callsWait = true
  }

  release(): void {
    this.#release()
    this.#held = null
    this.#callsWait = false
  }

  failNext(path: string, status: number, afterwards = false): void {
    this.#failures.push({ path, status, afterwards })
  }

  refuseEarly(status: number): void {
    this.#earlyStatus = status
  }

  failAlways(path: string, status: number): void {
    this.#failing = { path, status }
  }

  breakResults(isBroken: boolean): void {
    this.#isBroken = isBroken
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const path = url.split('?')[0]?.replace(/^\/v1/, '') ?? ''
    this.requests.push({ method, path, credential: String(request.headers['x-api-key'] ?? request.headers.authorization) })
    if (this.#earlyStatus !== 0 && method === 'POST' && path === '/messages/batches') {
      json(response, this.#earlyStatus, { type: 'error', error: { type: 'request_too_large', message: 'scripted' } })
      this.#earlyStatus = 0
      this.early.refused++
      return
    }
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    if (this.#callsWait && path === '/chat/completions') await this.#held
    const { path: failed, status } = this.#failing
    if (failed !== '' && `${method} ${path}`.includes(failed)) return json(response, status, { error: { message: 'scripted for now' } })
    const failing = this.#failures.findIndex(each => `${method} ${path}`.startsWith(each.path))
    const [failure] = failing === -1 ? [] : this.#failures.splice(failing, 1)
    if (failure !== undefined && !failure.afterwards) return json(response, failure.status, { type: 'error', error: { type: 'scripted', message: 'scripted' } })
    const body = Buffer.concat(pieces)
    const list = method === 'GET' ? this.#list(path, new URL(url, 'http://upstream.test').searchParams) : null
    const made = list ?? this.#answer(method, path, body, request.headers['content-type'] ?? '')
    if (failure !== undefined) return json(response, failure.status, { error: { message: 'scripted, but done' } })
    if (typeof made === 'string') return this.#stream(response, made)
    json(response, made === null ? 404 : 200, made ?? { error: { message: 'no such thing' } })
  }

  #answer(method: string, path: string, body: Buffer, type: string): object | string | null {
    const [, first = '', second = '', third = ''] = path.split('/')
    if (first === 'models') return { object: 'list', data: [{ id: 'gpt-batch-upstream', object: 'model' }] }
    if (first === 'files') return this.#file(method, second, third, body, type)
    if (first === 'batches') return this.#openaiBatch(method, second, third, body)
    return first === 'messages' && second === 'batches' ? this.#messages(method, third, path.split('/')[4] ?? '', body) : null
  }

  #file(method: string, id: string, part: string, body: Buffer, type: string): object | string | null {
    if (method === 'POST') {
      const made = `file-up${++this.#made}`
      const { purpose, file } = formOf(body, type)
      if (purpose !== 'batch') return null
      this.files.set(made, file)
      return { id: made, object: 'file', bytes: file.length, filename: 'batch.jsonl', purpose }
    }
    const content = this.files.get(id)
    if (content === undefined) return null
    if (method === 'DELETE') this.files.delete(id)
    return method === 'DELETE' ? { id, object: 'file', deleted: true } : part === 'content' ? content : { id, object: 'file' }
  }

  /** Lists the batches of a format, the newest first and `pageSize` a page. */
  #list(path: string, query: URLSearchParams): object | null {
    const format = path === '/batches' ? 'openai' : path === '/messages/batches' ? 'anthropic' : null
    if (format === null) return null
    const all = [...this.batches.values()].filter(batch => batch.format === format).reverse()
    const after = query.get(format === 'openai' ? 'after' : 'after_id')
    const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
    const data = all.slice(from, from + this.pageSize).map(batch => (format === 'openai' ? this.#openaiView(batch) : this.#messagesView(batch)))
    return { object: 'list', data, has_more: all.length > from + this.pageSize }
  }

  #openaiBatch(method: string, id: string, action: string, body: Buffer): object | null {
    if (method === 'POST' && id === '') {
      const asked = JSON.parse(body.toString()) as { input_file_id: string; metadata: Record<string, string> }
      const content = this.files.get(asked.input_file_id)
      if (content === undefined) return null
      return this.#openaiView(
        this.#begin(
          'openai',
          content
            .trim()
            .split('\n')
            .map(each => JSON.parse(each) as RequestLine),
          asked.metadata,
        ),
      )
    }
    const batch = this.batches.get(id)
    if (batch === undefined) return null
    if (action === 'cancel' && batch.status === 'in_progress') this.#cancel(batch, 'cancelled')
    return this.#openaiView(batch)
  }

  #messages(method: string, id: string, action: string, body: Buffer): object | string | null {
    if (method === 'POST' && id === '') {
      const { requests } = JSON.parse(body.toString()) as { requests: { custom_id: string; params: Record<string, unknown> }[] }
      return this.#messagesView(
        this.#begin(
          'anthropic',
          requests.map(({ custom_id, params }) => ({ custom_id, body: params })),
          {},
        ),
      )
    }
    const batch = this.batches.get(id)
    if (batch === undefined) return null
    if (method === 'DELETE') {
      this.batches.delete(id)
      return { id, type: 'message_batch_deleted' }
    }
    if (action === 'results') return this.files.get(batch.outputFileId ?? '') ?? null
    if (action === 'cancel' && batch.status === 'in_progress') this.#cancel(batch, 'ended')
    return this.#messagesView(batch)
  }

  #begin(format: RemoteBatch['format'], lines: readonly RequestLine[], metadata: Record<string, string>): RemoteBatch {
    const id = `${format === 'openai' ? 'batch' : 'msgbatch'}_up${++this.#made}`
    const batch: RemoteBatch = { id, format, lines, metadata, status: 'in_progress', outputFileId: null, madeMs: systemClock.nowMs() }
    this.batches.set(id, batch)
    return batch
  }

  /** A provider finishes one request that it has begun. */
  #cancel(batch: RemoteBatch, status: string): void {
    batch.status = status
    batch.outputFileId = this.#results(batch, 1)
  }

  #results(batch: RemoteBatch, done: number): string {
    const id = `file-up${++this.#made}`
    const lines = batch.lines.map(({ custom_id, body }, index) => {
      if (index >= done) return failedLine(batch, custom_id)
      const tokens = tokensOf(custom_id, body)
      this.totals.input += tokens.input
      this.totals.output += tokens.output
      this.totals.answers++
      return doneLine(batch, custom_id, body, tokens)
    })
    if (this.#isBroken) this.files.set(id, '<html>no results</html>\n')
    else this.files.set(id, `${lines.map(line => JSON.stringify(line)).join('\n')}\n`)
    return id
  }

  #openaiView({ id, status, lines, outputFileId, metadata, madeMs }: RemoteBatch): object {
    const counts = { total: lines.length, completed: status === 'in_progress' ? 0 : lines.length, failed: 0 }
    const made = { created_at: Math.floor(madeMs / 1000), metadata }
    return { id, object: 'batch', status, output_file_id: outputFileId, error_file_id: null, request_counts: counts, ...made }
  }

  #messagesView({ id, status, lines, madeMs }: RemoteBatch): object {
    const isEnded = status === 'ended'
    const counts = { processing: isEnded ? 0 : lines.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
    const made = { created_at: new Date(madeMs).toISOString(), results_url: isEnded ? 'http://elsewhere.test/results' : null }
    return { id, type: 'message_batch', processing_status: status, request_counts: counts, ...made }
  }

  async #stream(response: ServerResponse, content: string): Promise<void> {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    const half = Math.floor(content.length / 2)
    response.write(content.slice(0, half))
    if (this.#held !== null && content.includes(this.#heldText)) await this.#held
    response.end(content.slice(half))
  }
}

function doneLine({ format }: RemoteBatch, customId: string, body: Readonly<Record<string, unknown>>, { input, output }: Tokens): object {
  if (format === 'anthropic') {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: body['model'], content: [], stop_reason: 'end_turn' }
    return { custom_id: customId, result: { type: 'succeeded', message: { ...message, usage: { input_tokens: input, output_tokens: output } } } }
  }
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const reply = { id: 'c1', object: 'chat.completion', model: body['model'], choices: [{ index: 0, message: { role: 'assistant', content: 'ok' } }], usage }
  return { id: `r-${customId}`, custom_id: customId, response: { status_code: 200, request_id: 'r', body: reply }, error: null }
}

const failedLine = ({ format }: RemoteBatch, customId: string): object =>
  format === 'anthropic'
    ? { custom_id: customId, result: { type: 'canceled' } }
    : { id: `r-${customId}`, custom_id: customId, response: { status_code: 400, request_id: 'r', body: { error: { message: 'no' } } }, error: null }

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

/** Reads the form of a file. Throws when it is cut. */
function formOf(body: Buffer, type: string): { purpose: string; file: string } {
  const fields = fieldsOf(body.toString('utf8'), type)
  return { purpose: fields.get('purpose') ?? '', file: fields.get('file') ?? '' }
}
