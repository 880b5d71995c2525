/** The servers that the demonstration calls: providers that answer with a fixed sentence, one that is down, and receivers of webhooks. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LocalServers {
  /** `host:port`, for OUTBOUND_ALLOW. */
  readonly hostPort: string
  readonly url: string
  close(): Promise<void>
}

const sentence = 'This is the demonstration of Brigade. No model wrote this reply, and the call costs nothing outside of it.'
const usage = { prompt_tokens: 120, completion_tokens: 24, total_tokens: 144 }

/** Starts the servers on one free port of this machine. The first part of a path says which one is called. */
export async function startLocalServers(): Promise<LocalServers> {
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    server.listen(0, '127.0.0.1', done)
  })
  const hostPort = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    hostPort,
    url: `http://${hostPort}`,
    close: () =>
      new Promise(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const path = request.url ?? ''
  if (path.startsWith('/hooks/good')) return send(response, 200, { ok: true })
  if (!path.startsWith('/up/')) return send(response, 503, { error: { message: 'down' } })
  const body = parsed(Buffer.concat(chunks).toString('utf8'))
  if (body.stream === true) return stream(response, String(body.model))
  const choices = [{ index: 0, message: { role: 'assistant', content: sentence }, finish_reason: 'stop' }]
  send(response, 200, { id: 'chatcmpl-demo', object: 'chat.completion', created: 0, model: body.model, choices, usage })
}

function parsed(text: string): { model?: unknown; stream?: unknown } {
  try {
    return JSON.parse(text) as { model?: unknown; stream?: unknown }
  } catch {
    return {}
  }
}

function send(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

function stream(response: ServerResponse, model: string): void {
  const chunk = (more: object): string => `data: ${JSON.stringify({ id: 'chatcmpl-demo', object: 'chat.completion.chunk', created: 0, model, ...more })}\n\n`
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const word of sentence.split(/(?<= )/)) response.write(chunk({ choices: [{ index: 0, delta: { content: word }, finish_reason: null }] }))
  response.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }))
  response.write(chunk({ choices: [], usage }))
  response.end('data: [DONE]\n\n')
}
