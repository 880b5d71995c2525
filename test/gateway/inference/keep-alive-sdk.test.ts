import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { streamApis } from './stream-clients.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { KEEP_ALIVE_MS: '50' } })
})
afterAll(() => app.stop())

const plainCalls = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'Hi' }] }, comment: ': keep-alive\n\n' },
  messages: { path: '/v1/messages', body: { max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }, comment: 'event: ping\n' },
  responses: { path: '/v1/responses', body: { input: 'Hi' }, comment: ': keep-alive\n\n' },
} as const

for (const { api, clients, ...models } of streamApis) {
  for (const [way, model] of Object.entries(models)) {
    test(`${api}, ${way}: every client ignores the comments that keep a silent stream alive`, async () => {
      const servers = [app.alpha, app.others.claude, app.others.resp]
      for (const [name, client] of Object.entries(clients)) {
        for (const server of servers) {
          server.reset()
          server.script(() => ({ holdAfterChunks: 2 }))
        }
        let text = ''
        const call = client(app.baseUrl, app.key, model, part => {
          text += part
        })
        await until(() => text !== '')
        // A second stream that began later shows the minimum number of comments in the first one.
        const { path, body, comment } = plainCalls[api]
        const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' }
        const watched = await fetch(app.baseUrl + path, { method: 'POST', headers, body: JSON.stringify({ ...body, model, stream: true }) })
        let seen = ''
        const watching = (async () => {
          for await (const part of watched.body as unknown as AsyncIterable<Uint8Array>) seen += Buffer.from(part).toString()
        })()
        await until(() => seen.split(comment).length > 3)
        for (const server of servers) server.release()
        expect(await call, name).toBeNull()
        await watching
        expect(text, name).toBe('Hello from the test upstream')
      }
    })
  }
}
