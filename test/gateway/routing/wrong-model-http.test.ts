import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const messages = [{ role: 'user', content: 'Hello' }]

describe('a model that cannot be called', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const price = { input_inr_per_mtok: 1, output_inr_per_mtok: 4, source: 'test', as_of: '2026-01-01' }
        const without = { id: 'no-key.yet', base_url: `${urls.alpha}/v1`, residency: 'global' as const }
        return {
          ...file,
          providers: [...file.providers, without],
          models: [...file.models, { id: 'keyless-model', kind: 'chat' as const, routes: [{ provider: without.id, upstream_model: 'keyless', ...price }] }],
        }
      },
    })
  })
  afterAll(() => app.stop())
  const refusal = async (model: string, token = app.key) => {
    const reply = await app.call('POST', '/v1/chat/completions', { model, messages }, { token })
    return [reply.status, reply.json.error?.code, reply.json.error?.message]
  }

  test('FIRST-05 a model of the sandbox that is off, an unknown model and one without a configured provider get a message each, with the setting and the near name', async () => {
    expect(await refusal('sandbox-chat')).toEqual([
      404,
      'model_not_found',
      expect.stringMatching(/^This is a model of the sandbox, and the sandbox is off here.*SANDBOX=on/),
    ])
    expect(await refusal('test-modle')).toEqual([404, 'model_not_found', 'Unknown model id. Did you mean "test-model"? GET /v1/models lists the ids.'])
    expect(await refusal('someone/Test-Model')).toEqual([404, 'model_not_found', 'Unknown model id. Did you mean "test-model"? GET /v1/models lists the ids.'])
    expect(await refusal('nothing-like-it-at-all')).toEqual([404, 'model_not_found', 'Unknown model id. GET /v1/models lists the ids.'])
    expect(await refusal('x'.repeat(100_000))).toEqual([404, 'model_not_found', 'Unknown model id. GET /v1/models lists the ids.'])
    const [status, code, message] = await refusal('keyless-model')
    expect([status, code]).toEqual([400, 'no_route'])
    expect(message).toContain('no-key.yet is not configured here. The operator can set NO_KEY_YET_API_KEY.')
    expect(app.alpha.requests).toEqual([])
  })

  test('a credential learns no name of a model that its rules keep from it', async () => {
    const made = await app.call('POST', '/me/keys', { name: 'narrow', allowed_models: ['keyless-model'] }, { cookie: await app.signIn() })
    expect(made.status).toBe(201)
    expect(await refusal('test-modle', made.json.key)).toEqual([404, 'model_not_found', 'Unknown model id. GET /v1/models lists the ids.'])
  })
})

describe('while the sandbox serves', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
  })
  afterAll(() => app.stop())

  test('FIRST-05 a slip in the name of a sandbox model names the model', async () => {
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'sandbox-chta', messages })
    expect([reply.status, reply.json.error.message]).toEqual([404, 'Unknown model id. Did you mean "sandbox-chat"? GET /v1/models lists the ids.'])
  })
})
