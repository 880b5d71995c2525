/** Hostile servers: a provider of an organisation, and a store in front of an honest one. */
import { createServer, type IncomingMessage, request as requestTo, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startS3Server } from '../harness/s3-server.ts'

export interface HostileProvider {
  /** Ends in /v1. */
  readonly url: string
  readonly hostPort: string
  /** The answers to calls whose body contains `case:<name>`. All other calls get an honest answer. */
  readonly answers: Map<string, Answer>
  close(): Promise<void>
}

/** Writes an answer. `write` waits for room, and returns false when the gateway has disconnected. */
export type Answer = (response: ServerResponse, write: (bytes: string | Buffer) => Promise<boolean>, body: string) => Promise<void>

const honest = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'theirs',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

const chunk = (delta: object, finish_reason: string | null): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'theirs', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const honestStream = `${chunk({ role: 'assistant', content: 'fine' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`

export async function startHostileProvider(): Promise<HostileProvider> {
  const answers = new Map<string, Answer>()
  const { server, port } = await listen(async (request, response) => {
    const body = await textOf(request)
    const answer = answers.get(/case:([\w-]+)/.exec(body)?.[1] ?? '')
    if (answer === undefined && body.includes('"stream":true')) {
      response.setHeader('content-type', 'text/event-stream')
      response.end(honestStream)
      return
    }
    if (answer === undefined) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(request.url?.endsWith('/models') ? { object: 'list', data: [{ id: 'theirs', object: 'model' }] } : honest))
      return
    }
    await answer(response, bytes => writeTo(response, bytes), body).catch(() => response.destroy())
    response.end()
  })
  return { url: `http://127.0.0.1:${port}/v1`, hostPort: `127.0.0.1:${port}`, answers, close: () => closed(server) }
}

export interface HostileStore {
  readonly endpoint: string
  readonly hostPort: string
  readonly bucket: string
  readonly accessKey: string
  readonly secretKey: string
  /** Answers instead of the honest store. Returns false to let the honest store answer. */
  misbehave: (request: IncomingMessage, response: ServerResponse, write: (bytes: string | Buffer) => Promise<boolean>) => Promise<boolean>
  close(): Promise<void>
}

/** Starts a store that passes requests to an honest one, until it misbehaves. */
export async function startHostileStore(): Promise<HostileStore> {
  const real = await startS3Server()
  const realPort = Number(new URL(real.endpoint).port)
  const store = { misbehave: async () => false } as Pick<HostileStore, 'misbehave'>
  const { server, port } = await listen(async (request, response) => {
    const took = await store
      .misbehave(request, response, bytes => writeTo(response, bytes))
      .catch(() => {
        response.destroy()
        return true
      })
    if (took) {
      response.end()
      return
    }
    const passed = requestTo({ port: realPort, method: request.method, path: request.url, headers: request.headers }, reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  const { bucket, accessKey, secretKey } = real
  return Object.assign(store, {
    endpoint: `http://127.0.0.1:${port}`,
    hostPort: `127.0.0.1:${port}`,
    bucket,
    accessKey,
    secretKey,
    close: async () => {
      await closed(server)
      await real.close()
    },
  })
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', () => done()))
  return { server, port: (server.address() as AddressInfo).port }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) if (text.length < 4096) text += String(chunk)
  return text
}

/** Writes as fast as the reader reads. Resolves with false when the reader has disconnected. */
function writeTo(response: ServerResponse, bytes: string | Buffer): Promise<boolean> {
  if (response.destroyed || response.writableEnded) return Promise.resolve(false)
  if (response.write(bytes)) return Promise.resolve(true)
  return new Promise(done => {
    const end = (isThere: boolean) => (): void => {
      response.off('drain', drained).off('close', left)
      done(isThere)
    }
    const drained = end(true)
    const left = end(false)
    response.once('drain', drained).once('close', left)
  })
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise(done => server.close(() => done()))
}
