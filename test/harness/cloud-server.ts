/**
 * One server that acts as AWS Bedrock (InvokeModel) and Google's Vertex AI. The sandbox makes the answers. This server checks requests as strictly as the
 * clouds: an unknown field, an unknown beta, a missing version or a wrong credential is refused in the words of the cloud.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EventStreamCodec } from '@smithy/core/event-streams'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'

export const cloudKey = 'bedrock-api-key-test'

export interface CloudRequest {
  readonly method: string
  /** The path and the query, as they were sent. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly json: Record<string, unknown>
}

export interface CloudReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** A JSON value, or the parts of a body as they are written. */
  readonly body: unknown
  readonly parts?: readonly Uint8Array[]
}

export interface CloudServer {
  readonly url: string
  readonly requests: CloudRequest[]
  /** Returns another answer for a request. Null: the usual one. */
  answer: ((request: CloudRequest) => CloudReply | null) | null
  /** Changes the frames of a stream before they are sent, each as one part. */
  frames: ((frames: readonly Buffer[]) => readonly Uint8Array[]) | null
  /** Says whether the credential of a request is right. The usual check is a bearer. */
  accepts: (request: CloudRequest) => boolean | Promise<boolean>
  close(): Promise<void>
}

const codec = new EventStreamCodec(
  input => (typeof input === 'string' ? input : Buffer.from(input as Uint8Array).toString('utf8')),
  text => Buffer.from(text),
)
const text = (value: string) => ({ type: 'string' as const, value })

/** Returns a frame of Bedrock with an event of Anthropic. */
export function chunkFrame(event: unknown): Buffer {
  const headers = { ':event-type': text('chunk'), ':content-type': text('application/json'), ':message-type': text('event') }
  const json = typeof event === 'string' ? event : JSON.stringify(event)
  return Buffer.from(codec.encode({ headers, body: Buffer.from(JSON.stringify({ bytes: Buffer.from(json).toString('base64'), p: 'abcdefgh' })) }))
}

/** Returns the event of Anthropic in a frame. */
export function eventIn(frame: Uint8Array): unknown {
  const { bytes } = JSON.parse(Buffer.from(codec.decode(frame).body).toString()) as { bytes: string }
  return JSON.parse(Buffer.from(bytes, 'base64').toString())
}

/** Returns a frame with an exception of Bedrock. */
export function exceptionFrame(name: string, message: string): Buffer {
  const headers = { ':exception-type': text(name), ':content-type': text('application/json'), ':message-type': text('exception') }
  return Buffer.from(codec.encode({ headers, body: Buffer.from(JSON.stringify({ message })) }))
}

export async function startCloudServer(): Promise<CloudServer> {
  const sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
  const server = createServer((request, response) => {
    play(cloud, sandbox.url, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cloud: CloudServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer: null,
    frames: null,
    accepts: ({ headers }) => headers.authorization === `Bearer ${cloudKey}`,
    async close() {
      await sandbox.close()
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
  return cloud
}

async function play(cloud: CloudServer, sandboxUrl: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of incoming as AsyncIterable<Buffer>) parts.push(part)
  const raw = Buffer.concat(parts)
  const request = {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: incoming.headers,
    raw,
    json: raw.length === 0 ? {} : JSON.parse(String(raw)),
  }
  cloud.requests.push(request)
  const reply = cloud.answer?.(request) ?? (await (request.path.startsWith('/model/') ? bedrock : vertex)(cloud, sandboxUrl, request))
  response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers })
  for (const part of reply.parts ?? []) await new Promise(resolve => response.write(part, resolve))
  response.end(reply.parts === undefined ? JSON.stringify(reply.body) : undefined)
}

/** What Bedrock answers when no operation has the path, with status 200. */
export const unknownOperation = { Output: { __type: 'com.amazon.coral.service#UnknownOperationException' }, Version: '1.0' }

const amazonError = (status: number, name: string, message: string): CloudReply => ({
  status,
  headers: { 'x-amzn-errortype': `${name}:http://internal.amazon.com/` },
  body: { message },
})
const amazonNames: Readonly<Record<number, string>> = { 400: 'ValidationException', 429: 'ThrottlingException' }

const fieldsOfClouds = new Set(
  'messages system tools tool_choice max_tokens stop_sequences metadata temperature top_p top_k thinking anthropic_version anthropic_beta context_management'.split(
    ' ',
  ),
)
const betasOfClouds = /^(?:interleaved-thinking|context-management|computer-use)-\d/

/** Returns what the schema of a cloud refuses in a body. */
function faultOf(json: Record<string, unknown>, betas: unknown, version: string, more: readonly string[] = []): string | null {
  const unknown = Object.keys(json).find(name => !fieldsOfClouds.has(name) && !more.includes(name))
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`
  if (json['anthropic_version'] !== version) return 'anthropic_version: Field required'
  const given = Array.isArray(betas) ? betas : []
  if (given.some(beta => !betasOfClouds.test(String(beta)))) return 'invalid beta flag'
  const isPaired = given.some(beta => String(beta).startsWith('context-management-'))
  if (json['context_management'] !== undefined && !isPaired) return 'context_management: Extra inputs are not permitted'
  return JSON.stringify(json['system'] ?? '').includes('"scope"') ? 'system.0.cache_control.ephemeral.scope: Extra inputs are not permitted' : null
}

async function bedrock(cloud: CloudServer, sandboxUrl: string, request: CloudRequest): Promise<CloudReply> {
  const found = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream)$/.exec(request.path)
  if (found === null) return { body: unknownOperation }
  if (!(await cloud.accepts(request))) return amazonError(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.')
  const fault = faultOf(request.json, request.json['anthropic_beta'], 'bedrock-2023-05-31')
  if (fault !== null) return amazonError(400, 'ValidationException', fault)
  const stream = found[2] !== 'invoke'
  const answered = await ask(sandboxUrl, request.json, stream)
  if (!answered.ok) {
    const { error } = (await answered.json()) as { error: { message: string } }
    return amazonError(answered.status, amazonNames[answered.status] ?? 'InternalServerException', error.message)
  }
  if (!stream) return { body: await answered.json() }
  const frames = eventsIn(await answered.text()).map(chunkFrame)
  return { headers: { 'content-type': 'application/vnd.amazon.eventstream' }, body: null, parts: cloud.frames?.(frames) ?? frames }
}

async function vertex(cloud: CloudServer, sandboxUrl: string, request: CloudRequest): Promise<CloudReply> {
  const [path = '', query] = request.path.split('?')
  const found = /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/publishers\/(anthropic|google)\/models\/([^/:]+):(\w+)$/.exec(path)
  const error = (status: number, code: string, message: string): CloudReply => ({ status, body: { error: { code: status, message, status: code } } })
  if (found === null) return error(404, 'NOT_FOUND', 'The requested URL was not found on this server.')
  if (!(await cloud.accepts(request)) || request.headers['x-goog-api-key'] !== undefined)
    return error(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.')
  const [, publisher, model, method] = found
  if (publisher === 'google') return gemini(sandboxUrl, request, `${method}${query === undefined ? '' : `?${query}`}`)
  if (model === 'count-tokens') return { body: { input_tokens: 7 } }
  const betas = request.headers['anthropic-beta']
  const fault = faultOf(request.json, typeof betas === 'string' ? betas.split(',') : [], 'vertex-2023-10-16', ['stream'])
  if (fault !== null) return { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: fault } } }
  const answered = await ask(sandboxUrl, request.json, method === 'streamRawPredict')
  return relayed(answered)
}

async function gemini(sandboxUrl: string, request: CloudRequest, method: string): Promise<CloudReply> {
  const contents = request.json['contents']
  if (!Array.isArray(contents) || contents.some(content => typeof content !== 'object' || content === null || !('role' in content)))
    return { status: 400, body: { error: { code: 400, message: 'Please use a valid role: user, model.', status: 'INVALID_ARGUMENT' } } }
  const url = `${sandboxUrl}beta/models/sandbox-reasoning:${method}`
  return relayed(await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: String(request.raw) }))
}

async function relayed(answered: Response): Promise<CloudReply> {
  const type = answered.headers.get('content-type') ?? ''
  return { status: answered.status, headers: { 'content-type': type }, body: null, parts: [Buffer.from(await answered.arrayBuffer())] }
}

function ask(sandboxUrl: string, json: Record<string, unknown>, stream: boolean): Promise<Response> {
  const { anthropic_version: _version, anthropic_beta: _beta, context_management: _edits, ...body } = json
  const sent = { ...body, model: 'sandbox-reasoning', stream }
  return fetch(`${sandboxUrl}/messages`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) })
}

/** Returns the JSON of the events of a stream. */
export const eventsIn = (sse: string): string[] =>
  sse
    .split('\n')
    .filter(line => line.startsWith('data: '))
    .map(line => line.slice('data: '.length))
