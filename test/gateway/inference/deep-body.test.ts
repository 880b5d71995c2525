/** JSON that is nested too deeply is an error of its sender and must not affect other callers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const kept = statement<[orgId: number], { count: number }>('test.kept_content', `select count(*)::int as "count" from content_log where org_id = $1::int`)
const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
const messages = '[{"role":"user","content":"Hello there"}]'

describe('bodies that are nested too deeply', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  const send = (path: string, body: string, options: { cookie?: string } = {}) =>
    app.call('POST', path, body, { ...options, headers: { 'content-type': 'application/json' } })

  test('a body that is nested too deeply is 400 bad_request, translated or relayed, and opens no circuit', async () => {
    for (const body of [
      `{"model":"test-model","messages":${messages},"metadata":${deep}}`,
      `{"model":"same-id","messages":${messages},"metadata":${deep}}`,
      `{"model":"test-model","messages":${messages},"optimize":"price","metadata":${deep}}`,
      `{"model":"test-model","messages":${messages},"tools":${deep}}`,
      `{"model":"test-model","messages":[{"role":"assistant","tool_calls":${deep}}]}`,
    ])
      for (let times = 0; times < 3; times++) {
        const reply = await send('/v1/chat/completions', body)
        expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
      }
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
    expect(app.alpha.requests).toEqual([])
    const preview = await send('/me/route/preview', `{"model":"test-model","tools":${deep}}`, { cookie })
    expect([preview.status, preview.json.error.code]).toEqual([400, 'bad_request'])
  })

  test('a body that is nested too deeply does not remove the content of other calls from the content log', async () => {
    await app.call('PUT', '/me/org/data-retention', { days: 1 }, { cookie })
    await Promise.all([
      send('/v1/chat/completions', `{"model":"test-model","messages":${messages},"optimize":"price","metadata":${deep}}`),
      send('/v1/chat/completions', `{"model":"test-model","messages":${messages}}`),
    ])
    await app.gateway.app.contentLog.flush()
    expect((await app.db.one(kept, app.orgId)).count).toBe(1)
  })
})
