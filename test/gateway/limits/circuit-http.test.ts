import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../../src/platform/config.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const clock = movableClock(Date.UTC(2026, 10, 21, 3, 45, 1))
let app: TestApp
beforeAll(async () => {
  // Uses the default of CIRCUIT_OPEN_MS.
  app = await startApp({ clock, env: { CIRCUIT_OPEN_MS: String(loadConfig({}).CIRCUIT_OPEN_MS) } })
})
afterAll(() => app.stop())

test('LIM-08 a route whose circuit is open is tried last for about 30 s, and then in its normal order', async () => {
  const isAvailable = async (): Promise<boolean> =>
    (await app.call('GET', '/v1/models/test-model')).json.routes.find((route: { provider: string }) => route.provider === 'alpha').available
  const servedBy = async () => {
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] })
    expect(reply.status).toBe(200)
    return reply.headers.get('x-br-provider')
  }
  app.alpha.script(request => (request.path === '/v1/models' ? {} : { status: 500 }))
  for (let i = 0; i < 10 && (await isAvailable()); i++) await servedBy()
  expect(await isAvailable()).toBe(false)
  const openedMs = clock.nowMs()
  app.alpha.reset()
  clock.moveTo(openedMs + 27_000)
  expect([await isAvailable(), await servedBy(), app.alpha.requests.length]).toEqual([false, 'beta', 0])
  clock.moveTo(openedMs + 33_000)
  expect([await isAvailable(), await servedBy(), await servedBy()]).toEqual([true, 'alpha', 'alpha'])
})
