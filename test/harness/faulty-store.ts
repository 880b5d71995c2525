/**
 * An HTTP proxy in front of an object store that causes faults on the connection, to test how the store client handles them. Signatures stay valid, because
 * the store checks the same Host header.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * The fault of one call. With `pass` there is none. With `status` the store does not receive the call. All other faults affect the reply, after the store
 * has performed the call.
 */
export type Fault =
  | { readonly kind: 'pass' }
  /** The proxy answers, and the store does not receive the call. */
  | { readonly kind: 'status'; readonly status: number; readonly code?: string }
  /** The proxy answers with an error although the store has performed the call. */
  | { readonly kind: 'lie-status'; readonly status: number; readonly code?: string }
  /** The connection is closed without a reply. */
  | { readonly kind: 'lost-reply' }
  /** The reply never comes. */
  | { readonly kind: 'silence' }
  /** The connection is closed after half of the body. */
  | { readonly kind: 'cut-body' }
  /** Nothing more comes after half of the body. */
  | { readonly kind: 'stall-body' }
  /** The reply has another etag, a weak one, or none (null). */
  | { readonly kind: 'etag'; readonly change: (etag: string) => string | null }

export interface FaultyStore {
  readonly endpoint: string
  readonly hostPort: string
  /** Decides the fault of every call. */
  decide: (call: { readonly method: string; readonly path: string; readonly headers: IncomingMessage['headers'] }) => Fault
  /** The received calls, as `PUT /bucket/key`. */
  readonly calls: string[]
  close(): Promise<void>
}

const errorText = (code: string): string => `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`

export async function startFaultyStore(target: { readonly hostPort: string }): Promise<FaultyStore> {
  const calls: string[] = []
  const fail = (request: IncomingMessage, response: ServerResponse, status: number, code = 'InternalError'): void =>
    void response.writeHead(status, { 'content-type': 'application/xml' }).end(request.method === 'HEAD' ? undefined : errorText(code))
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const { method = '', url = '', headers } = request
    calls.push(`${method} ${url.split('?')[0]}`)
    const fault = made.decide({ method, path: url, headers })
    if (fault.kind === 'status') return fail(request, response, fault.status, fault.code)
    const reply = await forward(target.hostPort, request, Buffer.concat(parts))
    if (fault.kind === 'silence') return
    if (fault.kind === 'lost-reply') return void request.socket.destroy()
    if (fault.kind === 'lie-status') return fail(request, response, fault.status, fault.code)
    const sent: Record<string, string | string[] | undefined> = { ...reply.headers }
    if (fault.kind === 'etag' && typeof sent['etag'] === 'string') {
      const changed = fault.change(sent['etag'])
      if (changed === null) delete sent['etag']
      else sent['etag'] = changed
    }
    response.writeHead(reply.status, sent)
    if (fault.kind !== 'cut-body' && fault.kind !== 'stall-body') return void response.end(reply.body)
    response.write(reply.body.subarray(0, Math.floor(reply.body.length / 2)))
    if (fault.kind === 'cut-body') setImmediate(() => request.socket.destroy())
  }
  const server = createServer((request, response) => void handle(request, response).catch(() => request.socket.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hostPort = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const made: FaultyStore = {
    endpoint: `http://${hostPort}`,
    hostPort,
    decide: () => ({ kind: 'pass' }),
    calls,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
  return made
}

interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

function forward(hostPort: string, { method, url, headers }: IncomingMessage, body: Buffer): Promise<Reply> {
  const [host, port] = hostPort.split(':')
  return new Promise((resolve, reject) => {
    const upstream = send({ host, port, method, path: url, headers, agent: false }, response => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 500, headers: response.headers, body: Buffer.concat(parts) }))
    })
    upstream.on('error', reject)
    upstream.end(body)
  })
}
