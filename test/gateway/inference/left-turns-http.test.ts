import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { heldTurnsClock } from '../../harness/held-turns.ts'

const clock = heldTurnsClock()
let app: TestApp

beforeAll(async () => {
  app = await startApp({ clock })
}, 60_000)
afterAll(() => app?.stop())

const heavyChat = (signal?: AbortSignal) =>
  app.call(
    'POST',
    '/v1/chat/completions',
    { model: 'alpha-only', messages: Array.from({ length: 4_000 }, () => ({ role: 'user', content: 'x' })) },
    signal === undefined ? {} : { signal },
  )

test('a caller who leaves while a heavy body waits for its turn gives up the place and ends its call', async () => {
  clock.hold()
  const served = heavyChat()
  await until(() => app.gateway.app.inflight.size === 1)
  const leaving = new AbortController()
  const left = heavyChat(leaving.signal).catch(() => 'left')
  await until(() => app.gateway.app.inflight.size === 2)
  // A light call is served meanwhile, and by its end the body of the heavy one has arrived.
  expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'x' }] })).status).toBe(200)
  leaving.abort()
  expect(await left).toBe('left')
  await until(() => app.gateway.app.inflight.size === 1)
  clock.release()
  expect((await served).status).toBe(200)
  expect(app.alpha.requests).toHaveLength(2)
}, 60_000)
