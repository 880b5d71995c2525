import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

describe('how often a signed-in person may call the console', () => {
  const clock = movableClock()
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ clock, env: { CONSOLE_RPM: '5' } })
  })
  afterAll(() => app.stop())

  test('the limit counts all sessions of one person together, and does not affect another person or the next minute', async () => {
    const { userId, cookie } = await app.newMember('member')
    const again = await app.signIn(userId)
    const other = await app.newMember('member')
    const me = (who: string) => app.call('GET', '/me', undefined, { cookie: who })
    for (let call = 0; call < 5; call++) expect((await me(call % 2 === 0 ? cookie : again)).status).toBe(200)
    const refused = await me(again)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'rate_limit_exceeded'])
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    expect((await me(other.cookie)).status).toBe(200)
    clock.advance(seconds * 1000)
    expect((await me(cookie)).status).toBe(200)
  })

  test('HEAD works where GET only reads, and not where GET has an effect', async () => {
    const { cookie } = await app.newMember('member')
    const head = (path: string) => fetch(app.baseUrl + path, { method: 'HEAD', redirect: 'manual', headers: { cookie } })
    expect((await head('/health')).status).toBe(200)
    for (const path of ['/auth/google', '/auth/google/callback']) {
      const reply = await head(path)
      expect([reply.status, reply.headers.get('allow')], path).toEqual([405, 'GET'])
    }
  })
})
