/** What a stream or a reply keeps in memory for a provider that sends long names, frames and chunks. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { wholeChat } from '../../harness/whole-chat.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const messages = [{ role: 'user', content: 'hello' }]
const streams = 30
const longBytes = 600_000
const long = 'x'.repeat(longBytes)
const chunkOf = (more: object): string => `data: ${JSON.stringify({ ...more, choices: [{ index: 0, delta: { content: 'a' } }] })}\n\n`
const begin = chunkOf({ id: 'c', model: 'm' })

/** The bytes that live now, without what no object refers to. */
async function liveBytes(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    collect()
    await new Promise(resolve => setImmediate(resolve))
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  try {
    while ((await reader?.read())?.done === false);
  } catch {
    // The caller has left.
  }
}

describe('what is kept of replies', () => {
  let app: TestApp
  let padding: Server
  const held = new Set<Socket>()
  beforeAll(async () => {
    // A reply in small chunks with long extensions. Its end never comes.
    padding = createServer()
    padding.on('request', (request, response) => {
      request.resume()
      const { socket } = request
      held.add(socket)
      response.on('error', () => undefined)
      const text = wholeChat(1_500_000)
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
      for (let at = 0; at < text.length - 1100; at += 1100) socket.write(`44c;${'p'.repeat(12_000)}\r\n${text.slice(at, at + 1100)}\r\n`)
    })
    await new Promise<void>(done => padding.listen(0, '127.0.0.1', done))
    const base_url = `http://127.0.0.1:${(padding.address() as AddressInfo).port}/v1`
    app = await startApp({
      env: { CIRCUIT_FAILURES: '1000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        const route = { provider: 'padding', input_inr_per_mtok: 0, output_inr_per_mtok: 0, source: 'test', as_of: '2026-01-01' }
        return {
          ...file,
          providers: [...file.providers, { id: 'padding', base_url, auth: 'none', residency: 'global' }],
          models: [...file.models, { id: 'padded', kind: 'chat', context_length: 10_000, routes: [route] }],
        }
      },
    })
    // The first streams load code, which stays.
    for (const path of ['/v1/messages', '/v1/chat/completions']) await keptBy(path, [chunkOf({ id: long })])
  }, 60_000)
  afterAll(async () => {
    padding.closeAllConnections()
    padding.close()
    await app.stop()
  })
  beforeEach(() => app.alpha.reset())

  const send = (path: string, body: object, signal: AbortSignal): Promise<Response> =>
    fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'test-model', provider: 'alpha', messages, max_tokens: 50, ...body }),
      signal,
    })

  /** Returns the bytes that many silent streams keep, after the gateway has sent all that it has. */
  async function keptBy(path: string, rawStream: readonly string[]): Promise<number> {
    const leaving = new AbortController()
    const parts = rawStream.map(part => Buffer.from(part))
    app.alpha.script(() => ({ rawStream: parts, holdAfterRaw: true }))
    const before = await liveBytes()
    await Promise.all(
      Array.from({ length: streams }, async () => {
        const reply = await send(path, { stream: true }, leaving.signal)
        expect(reply.status).toBe(200)
        const reader = reply.body?.getReader()
        await reader?.read()
        // What is not read would be kept as an unread reply.
        void readAll(reader)
      }),
    )
    await until(() => app.alpha.requests.length === streams, 'all streams run')
    await new Promise(resolve => setTimeout(resolve, 300))
    const kept = (await liveBytes()) - before
    leaving.abort()
    await until(() => app.alpha.requests.every(({ aborted }) => aborted), 'all streams are over')
    app.alpha.reset()
    return kept
  }

  test.each([
    ['a long first chunk', '/v1/chat/completions', [chunkOf({ id: long })]],
    ['a long first chunk of a translated stream', '/v1/messages', [chunkOf({ id: long })]],
    ['a long name of an event', '/v1/messages', [begin, `event: ${long}\n`]],
    ['a long name of a model', '/v1/chat/completions', [chunkOf({ model: long })]],
    ['a long name of a model of a translated stream', '/v1/messages', [chunkOf({ model: long })]],
  ])('HARD-03 a silent stream does not keep %s in memory', async (_what, path, rawStream) => {
    expect(await keptBy(path, rawStream)).toBeLessThan((streams * longBytes) / 2)
  })

  test('HARD-03 small chunks of a whole reply do not keep the buffers around them', async () => {
    const leaving = new AbortController()
    const before = await liveBytes()
    const calls = Array.from({ length: 4 }, () => send('/v1/chat/completions', { model: 'padded', provider: 'padding' }, leaving.signal).catch(() => null))
    const read = async (): Promise<number> => {
      const { text } = await app.call('GET', '/metrics', undefined, { token: null })
      return Number(/^brigade_replies_held_bytes (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    await until(async () => (await read()) > 4 * 1_300_000, 'the replies have arrived')
    const kept = (await liveBytes()) - before
    leaving.abort()
    await Promise.all(calls)
    for (const socket of held) socket.destroy()
    // Without copies, each chunk of 1100 bytes keeps a buffer of 13 KB or more.
    expect(kept).toBeLessThan(5 * 4 * 1_500_000)
  })
})
