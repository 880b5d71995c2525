import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

describe('faults of our own', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  test('ERR-04 an internal fault is 500 internal_error without stack or cause, and the log has both with the request id', async () => {
    await app.db.script('alter table signing_keys rename to signing_keys_gone')
    const reply = await app.call('GET', '/.well-known/jwks.json')
    await app.db.script('alter table signing_keys_gone rename to signing_keys')
    expect([reply.status, reply.json.error.code, reply.json.error.type]).toEqual([500, 'internal_error', 'api_error'])
    expect(reply.text).not.toMatch(/signing_keys|relation|at .*\.ts|select/i)
    const line = app.logLines.find(each => each.includes(reply.headers.get('x-request-id') ?? 'none'))
    expect(line).toContain('signing_keys')
    expect((await app.call('GET', '/.well-known/jwks.json')).status).toBe(200)
  })
})
