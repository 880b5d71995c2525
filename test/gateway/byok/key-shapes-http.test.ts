/** Which keys are saved, and to which provider a key belongs. A key is refused for its shape only when its provider cannot have issued it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const list = { data: [{ id: 'a-model' }] }

describe('shapes of own keys', () => {
  let app: TestApp
  let upstream: UpstreamServer
  let owner: string
  beforeAll(async () => {
    upstream = await startUpstream()
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return {
          ...file,
          providers: [
            ...file.providers,
            // The catalog's entry for OpenAI, with the address of this test's server.
            { id: 'openai', base_url: upstream.url },
            { id: 'delta', name: 'Delta', base_url: upstream.url },
          ],
        }
      },
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await upstream.close()
  })
  const put = (provider: string, body: object) => app.call('PUT', `/me/byok/${provider}`, body, { cookie: owner })
  const answer = (body: unknown, status = 200) => upstream.script(() => ({ status, body }))

  test('EDGE-14 the test call decides about an OpenAI key of any shape, and a key that certainly belongs to another provider is sent nowhere', async () => {
    const issued = [
      `sk-${'a1B2'.repeat(12)}`,
      `sk-${'A1'.repeat(10)}T3BlbkFJ${'b2'.repeat(10)}`,
      'sk-proj-abc_DEF-123',
      'sk-svcacct-abc',
      'sk-None-abc',
      'sess-abc123',
    ]
    try {
      for (const key of issued) {
        upstream.reset()
        answer(list)
        expect([key, (await put('openai', { key })).status]).toEqual([key, 200])
        expect(upstream.requests.at(-1)?.headers.authorization).toBe(`Bearer ${key}`)
        upstream.reset()
        answer({ error: { message: 'Incorrect API key provided' } }, 401)
        const refused = await put('openai', { key })
        expect([refused.status, refused.json.error.code, upstream.requests.length]).toEqual([400, 'bad_key', 1])
      }
      // Keys that certainly come from another provider, saved at a provider whose own keys look different.
      upstream.reset()
      answer(list)
      for (const [provider, key] of [
        ['openai', 'sk-ant-api03-abc'],
        ['openai', 'sk-or-v1-abc'],
        ['together', 'gsk_abcdefgh'],
        ['together', `sk-${'A1'.repeat(10)}T3BlbkFJ${'b2'.repeat(10)}`],
      ] as const) {
        const refused = await put(provider, { key })
        expect([key, refused.status, refused.json.error.code]).toEqual([key, 400, 'bad_key'])
      }
      expect(upstream.requests).toEqual([])
      // Many providers issue keys that begin with a plain `sk-`.
      expect((await put('delta', { key: issued[0] })).status).toBe(200)
    } finally {
      await app.call('DELETE', '/me/byok/openai', undefined, { cookie: owner })
    }
  })

  test('EDGE-14 an upstream_key with the key shape of one provider goes only to that provider; any other key goes to the first provider that accepts keys', async () => {
    const send = (upstream_key: string, model = 'test-model') =>
      app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], upstream_key })
    expect((await send(`sk-${'a1B2'.repeat(12)}`)).headers.get('x-br-provider')).toBe('alpha')
    // The key is certainly OpenAI's, and OpenAI serves no route of this model. So no provider gets the key.
    app.alpha.reset()
    const refused = await send(`sk-${'A1'.repeat(10)}T3BlbkFJ${'b2'.repeat(10)}`)
    expect([refused.status, refused.json.error.code, app.alpha.requests.length]).toEqual([400, 'no_route', 0])
  })
})
