/** A webhook receiver for tests: an HTTP server that keeps the received bytes and answers as the test says. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './until.ts'

/** One received request. */
export interface ReceivedDelivery {
  readonly path: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  /** The values of X-BR-Delivery-Id, X-BR-Event and X-BR-Signature. An absent header gives ''. */
  readonly deliveryId: string
  readonly event: string
  readonly signature: string
  /** The parsed body. Null when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
  /** Number of earlier requests with this delivery id. */
  readonly earlier: number
}

/**
 * The answer of the receiver. `hang` reads the request and never answers. `reset` breaks the connection. `drip` sends the head and then endlessly one byte
 * after another. `huge` sends an endless body as fast as it is read.
 */
export type ReceiverAnswer =
  | 'hang'
  | 'reset'
  | 'drip'
  | 'huge'
  | { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string; readonly after?: Promise<unknown> }

export interface WebhookReceiver {
  /** `http://127.0.0.1:<port>`. Each path can serve as a separate endpoint. */
  readonly url: string
  readonly hostPort: string
  /** All received requests, in order of arrival. */
  readonly received: readonly ReceivedDelivery[]
  /** Returns the requests of a path, in order. */
  at(path: string): readonly ReceivedDelivery[]
  /** Sets the answer from now on. The default is an immediate 200. */
  answer(how: ReceiverAnswer | ((request: ReceivedDelivery) => ReceiverAnswer)): void
  /** Returns the number of open requests of a path now, and the maximum so far. */
  openAt(path: string): { readonly now: number; readonly max: number }
  /** Waits until `count` requests have arrived at the path, or at any path when it is left out. */
  untilReceived(count: number, path?: string): Promise<readonly ReceivedDelivery[]>
  /** Forgets what was received. */
  forget(): void
  /** Closes all connections and the port, so that new connections are refused. */
  close(): Promise<void>
}

const dripMs = 20

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  let received: ReceivedDelivery[] = []
  let how: ReceiverAnswer | ((request: ReceivedDelivery) => ReceiverAnswer) = {}
  const open = new Map<string, { now: number; max: number }>()
  const timers = new Set<NodeJS.Timeout>()
  const openAt = (path: string): { now: number; max: number } => {
    const found = open.get(path) ?? { now: 0, max: 0 }
    open.set(path, found)
    return found
  }
  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '/'
    const count = openAt(path)
    count.now++
    count.max = Math.max(count.max, count.now)
    response.once('close', () => {
      count.now--
    })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const delivery = read(request, Buffer.concat(chunks), received)
    received.push(delivery)
    await reply(response, typeof how === 'function' ? how(delivery) : how, timers)
  }
  const server = createServer((request, response) => {
    onRequest(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const at = (path: string): readonly ReceivedDelivery[] => received.filter(request => request.path === path)
  return {
    url: `http://127.0.0.1:${port}`,
    hostPort: `127.0.0.1:${port}`,
    get received() {
      return received
    },
    at,
    answer(next) {
      how = next
    },
    openAt,
    async untilReceived(count, path) {
      const now = (): readonly ReceivedDelivery[] => (path === undefined ? received : at(path))
      await until(() => now().length >= count, `${count} requests at ${path ?? 'the receiver'}, not ${now().length}`, 20_000)
      return now()
    },
    forget() {
      received = []
    },
    async close() {
      for (const timer of timers) clearInterval(timer)
      server.closeAllConnections()
      await new Promise(done => server.close(done))
    },
  }
}

function read(request: IncomingMessage, raw: Buffer, before: readonly ReceivedDelivery[]): ReceivedDelivery {
  const header = (name: string): string => String(request.headers[name] ?? '')
  const deliveryId = header('x-br-delivery-id')
  let json: unknown = null
  try {
    json = JSON.parse(raw.toString())
  } catch {
    // The body is not JSON. The test can read the bytes.
  }
  const earlier = before.filter(one => one.deliveryId === deliveryId).length
  const named = { deliveryId, event: header('x-br-event'), signature: header('x-br-signature') }
  return { path: request.url ?? '/', method: request.method ?? '', headers: request.headers, raw, json, earlier, ...named }
}

async function reply(response: ServerResponse, answer: ReceiverAnswer, timers: Set<NodeJS.Timeout>): Promise<void> {
  if (answer === 'hang') return
  if (answer === 'reset') {
    response.socket?.resetAndDestroy()
    return
  }
  if (answer === 'drip') {
    response.writeHead(200)
    const timer = setInterval(() => response.write('.'), dripMs)
    timers.add(timer)
    response.once('close', () => clearInterval(timer))
    return
  }
  if (answer === 'huge') {
    response.writeHead(200)
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const pump = (): void => {
      while (!response.destroyed && response.write(chunk)) {
        // Writes until the socket is full.
      }
    }
    response.on('drain', pump)
    pump()
    return
  }
  await answer.after
  response.writeHead(answer.status ?? 200, answer.headers ?? {})
  response.end(answer.body ?? '')
}
