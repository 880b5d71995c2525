import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const unset = { model: null, connectors: [], rules: null }

describe('the coding profile', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  const get = (token = app.key) => app.call('GET', '/v1/me/profile', undefined, { token })
  const put = (body: unknown, token = app.key) => app.call('PUT', '/v1/me/profile', body, { token })

  test('PROF-01 without a saved profile, every credential reads the defaults', async () => {
    const keys = [app.key, (await app.newKey({ scope: 'inference' })).key, (await app.newKey({ withUser: false })).key, (await app.newAgent('reader')).token]
    for (const token of keys) {
      const reply = await get(token)
      expect([reply.status, reply.json]).toEqual([200, unset])
    }
  })

  test('PROF-02 a saved profile is returned to every credential of the person, and a second PUT replaces the whole profile', async () => {
    const profile = { model: 'test-model', connectors: ['GITHUB_TOKEN', 'DATABASE_URL', '_x1'], rules: 'Write tests.\nUse "plain" words — ₹.' }
    const saved = await put(profile)
    expect([saved.status, saved.json]).toEqual([200, profile])
    for (const token of [app.key, (await app.newKey({ scope: 'inference' })).key, (await app.newAgent('same person')).token])
      expect((await get(token)).json).toEqual(profile)
    expect((await put({ rules: 'Only this.', connectors: ['A', 'B', 'A'] })).json).toEqual({ model: null, connectors: ['A', 'B'], rules: 'Only this.' })
    expect((await put({})).json).toEqual(unset)
    expect((await put({ model: null, connectors: [], rules: null })).json).toEqual(unset)
    expect((await get()).json).toEqual(unset)
  })

  test('a profile belongs to one person in one organisation', async () => {
    await put({ model: 'test-model' })
    const other = await app.otherOrg('Profile Org')
    expect((await get(other.key)).json).toEqual(unset)
    await put({ rules: 'theirs' }, other.key)
    expect((await get()).json.model).toBe('test-model')
    const { userId } = await app.newMember('member')
    const colleague = await app.gateway.app.keys.create({ orgId: app.orgId, userId, workspaceId: null, name: 'colleague', scope: 'full' })
    expect((await get(colleague.key)).json).toEqual(unset)
    expect((await get((await app.newKey({ withUser: false })).key)).json).toEqual(unset)
  })

  test('PROF-03 a connector that is not the name of an environment variable, or looks like a secret, is 400 bad_request, and the error does not repeat it', async () => {
    await put({ connectors: ['KEPT'] })
    const wrong = [
      'GITHUB_TOKEN=ghp_abc',
      'sk-live-abcdef1234567890',
      'br-abcdef1234567890abcdef',
      'has space',
      '1STARTS_WITH_DIGIT',
      'dash-ed',
      '',
      'X'.repeat(101),
      'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
      'gsk_abcdefghijklmnop1234',
      'AKIAIOSFODNN7EXAMPLE',
      'AIzaSyA1234567890abcdefghijklmnopqrstuv',
      'deadbeefdeadbeefdeadbeefdeadbeef00',
      'Zx9Kp2Lm8Qw4Rt7Yu1Io5',
      'https://user:pass@host',
      'TOKEN\n',
      'ÜBER',
    ]
    for (const connector of wrong) {
      const reply = await put({ connectors: ['FINE', connector] })
      expect([reply.status, reply.json.error.code], connector).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('connectors[1]')
      if (connector.length > 9) expect(reply.text).not.toContain(connector.trim())
    }
    for (const connectors of ['GITHUB_TOKEN', [7], { A: 1 }, Array.from({ length: 101 }, (_, at) => `N${at}`)])
      expect((await put({ connectors })).json.error.code).toBe('bad_request')
    expect((await get()).json.connectors).toEqual(['KEPT'])
    const names = ['GITHUB_TOKEN', 'npm_config_registry', 'SK_LIVE_KEY', 'GOOGLE_APPLICATION_CREDENTIALS', 'x', 'OPENAI_API_KEY_2', 'pk_name', 'X'.repeat(100)]
    expect((await put({ connectors: names })).json.connectors).toEqual(names)
  })

  test('rules accept up to 32 KiB of text', async () => {
    expect((await put({ rules: 'é'.repeat(16 * 1024) })).status).toBe(200)
    for (const rules of ['é'.repeat(16 * 1024 + 1), 'nul \u0000 inside', 7]) expect((await put({ rules })).json.error.code).toBe('bad_request')
  })

  test('PROF-04 AUTH-13 a key with scope inference, an agent and a key without a user may not write: 403 forbidden', async () => {
    await put({ model: 'test-model' })
    const tokens = [(await app.newKey({ scope: 'inference' })).key, (await app.newAgent('writer')).token, (await app.newKey({ withUser: false })).key]
    for (const token of tokens) {
      const reply = await put({ model: 'alpha-only' }, token)
      expect([reply.status, reply.json.error.code]).toEqual([403, 'forbidden'])
    }
    expect((await get()).json.model).toBe('test-model')
  })

  test('PROF-05 an unknown model is 400 bad_model; catalog ids, presets and provider/model are accepted', async () => {
    for (const model of ['no-such-model', '', 'nobody/some-model', 'openai/', 'openai/with space', '/x', 'openai/x\u0000'])
      expect([(await put({ model })).status, (await put({ model })).json.error.code], model).toEqual([400, 'bad_model'])
    for (const model of ['test-model', 'auto', 'openai/gpt-x', 'openrouter/vendor/model-1'])
      expect([(await put({ model })).status, (await get()).json.model]).toEqual([200, model])
  })
})
