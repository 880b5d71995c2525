/** Clients that disconnect after their stream is settled and before they have its last byte. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const thinker = {
  id: 'thinker',
  kind: 'chat',
  context_length: 200_000,
  max_output_tokens: 10_000_000,
  reasoning: true,
  routes: [{ provider: 'alpha', upstream_model: 'thinker-up', input_inr_per_mtok: 0, output_inr_per_mtok: 1, source: 'test', as_of: '2026-01-01' }],
}
const body = JSON.stringify({ model: 'thinker', stream: true, messages: [{ role: 'user', content: 'hi' }] })
const begin = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'thinker-up' }
const delta = (content: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ ...begin, choices: [{ index: 0, delta: content, finish_reason: finish }] })}\n\n`
const end = `data: ${JSON.stringify({ ...begin, choices: [], usage: { prompt_tokens: 3, completion_tokens: 50, total_tokens: 53 } })}\n\ndata: [DONE]\n\n`

for (const settle of ['journal', 'postgres'])
  describe(`a client that leaves a settled stream, SETTLE=${settle}`, () => {
    let app: TestApp
    const uncaught: unknown[] = []
    const note = (error: unknown): void => {
      uncaught.push(error)
    }
    beforeAll(async () => {
      process.on('uncaughtExceptionMonitor', note)
      const operatorFile = (urls: Parameters<typeof defaultOperatorFile>[0]) => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, thinker] }
      }
      app = await startApp({ env: { SETTLE: settle }, operatorFile })
    })
    afterAll(async () => {
      await app.stop()
      process.off('uncaughtExceptionMonitor', note)
    })
    beforeEach(() => app.alpha.reset())
    afterEach(() => {
      expect(uncaught.splice(0)).toEqual([])
    })

    function open(): Socket {
      const { hostname, port } = new URL(app.baseUrl)
      const socket = connect({ port: Number(port), host: hostname })
      socket.on('error', () => undefined)
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${app.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
      return socket
    }
    const rows = () => usageRows(app, 100)
    const settled = (count: number) => until(async () => (await rows()).length >= count, `${count} calls are settled`)
    const idle = () => until(() => app.gateway.app.inflight.size === 0, 'no call is in flight')

    test('HARD-05 a client that leaves while the last event still waits for it ends its call, and has one usage row', async () => {
      const url = `data:image/png;base64,${'A'.repeat(5_500_000)}`
      app.alpha.script([
        { rawStream: [Buffer.from(delta({ content: 'hello' }) + delta({ images: [{ type: 'image_url', image_url: { url } }] }, 'stop') + end)] },
      ])
      const before = (await rows()).length
      const socket = open().pause()
      await settled(before + 1)
      expect(app.gateway.app.inflight.size).toBe(1)
      socket.destroy()
      await idle()
      const after = await rows()
      expect(after).toHaveLength(before + 1)
      expect(after[0]?.outcome).toBe('ok')
    })

    test('HARD-05 clients that reset their connections around the end of short streams stop no other call', async () => {
      const burst = delta({ content: 'hello' }) + delta({ content: 'x' }).repeat(200) + delta({}, 'stop') + end
      app.alpha.script(() => ({ rawStream: [delta({ content: 'hello' }), delta({ content: 'y' }), burst], holdAfterRawParts: 1 }))
      const sockets = Array.from({ length: 20 }, open)
      await Promise.all(sockets.map(socket => once(socket, 'data')))
      app.alpha.release()
      // The resets come in the 12 ms in which the streams end and are settled.
      await Promise.all(
        sockets.map(async (socket, index) => {
          await systemClock.sleep(0.6 * index)
          socket.resetAndDestroy()
        }),
      )
      await idle()
      app.alpha.reset()
      expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'x' }] })).status).toBe(200)
    })
  })
