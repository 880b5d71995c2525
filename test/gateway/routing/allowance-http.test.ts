import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const denied = [403, 'model_not_allowed']

describe('models and providers that a credential may use', () => {
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp()
    owner = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const served = async (token: string, body: object, headers: Record<string, string> = {}) => {
    const reply = await app.call('POST', '/v1/chat/completions', { messages: hello, ...body }, { token, headers })
    return [reply.status, reply.json.error?.code ?? reply.headers.get('x-br-provider')]
  }
  const ids = async (token: string, path: string) =>
    (await app.call('GET', path, undefined, { token })).json.data.map((entry: { id: string }) => entry.id).sort()
  const dialed = () => app.alpha.requests.length + app.beta.requests.length + app.indus.requests.length

  async function newKey(rules: object): Promise<{ key: string; id: number }> {
    const made = await app.call('POST', '/me/keys', rules, { cookie: owner })
    expect(made.status).toBe(201)
    return made.json
  }
  async function newAgent(name: string, rules: object): Promise<{ id: number; token: string }> {
    const made = await app.call('POST', '/v1/me/agents', { name, ...rules })
    const minted = await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {})
    return { id: made.json.id, token: minted.json.access_token }
  }
  async function modelsOverMcp(token: string): Promise<string[]> {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${app.baseUrl}/mcp`), { requestInit: { headers: { authorization: `Bearer ${token}` } } }) as never,
    )
    try {
      const result = await client.callTool({ name: 'models_list', arguments: { limit: 100 } })
      return (result.structuredContent as { models: { id: string }[] }).models.map(model => model.id).sort()
    } finally {
      await client.close()
    }
  }

  /** Checks what a credential may do that may use only test-model and same-id on beta and indus. */
  async function checkLimited(token: string): Promise<void> {
    expect(await served(token, { model: 'test-model' })).toEqual([200, 'beta'])
    expect(await served(token, { model: 'test-model', provider: 'indus' })).toEqual([200, 'indus'])
    expect(await served(token, { model: 'auto:cheapest' })).toEqual([200, 'beta'])
    expect(await served(token, { model: 'auto:sovereign' })).toEqual([200, 'indus'])
    expect(await served(token, { model: 'test-model', fallbacks: ['alpha-only', { model: 'test-model', provider: 'alpha' }, 'test-model'] })).toEqual([
      200,
      'beta',
    ])
    const before = dialed()
    const outside = [
      { model: 'alpha-only' },
      { model: 'same-id' },
      { model: 'test-model', provider: 'alpha' },
      { model: 'auto', provider: 'alpha' },
      { model: 'test-model', fallbacks: ['alpha-only', 'same-id'] },
      { model: 'alpha-only', fallbacks: ['test-model'] },
      { model: 'test-model', provider: 'byoe:box' },
    ]
    for (const body of outside) {
      expect(await served(token, body), JSON.stringify(body)).toEqual(denied)
      const foretold = await app.call('POST', '/me/route/preview', body, { token })
      expect([foretold.status, foretold.json.error.code]).toEqual(denied)
    }
    const embed = await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: 'x' }, { token })
    expect([embed.status, embed.json.error.code]).toEqual(denied)
    expect(await served(token, { model: 'nothing' })).toEqual([404, 'model_not_found'])
    expect(dialed()).toBe(before)

    const models = await ids(token, '/v1/models')
    expect(models.filter((id: string) => !id.startsWith('auto'))).toEqual(['test-model'])
    expect(models).toContain('auto:cheapest')
    expect(models).not.toContain('auto:vision')
    expect(await modelsOverMcp(token)).toEqual(models)
    expect(await ids(token, '/v1/providers')).toEqual(['beta', 'indus'])
    const routes = async (id: string) =>
      (await app.call('GET', `/v1/models/${id}`, undefined, { token })).json.routes.map((route: { provider: string }) => route.provider)
    expect(await routes('test-model')).toEqual(['beta', 'indus'])
    expect(new Set(await routes('auto'))).toEqual(new Set(['beta', 'indus']))
    for (const id of ['alpha-only', 'auto:vision'])
      expect((await app.call('GET', `/v1/models/${id}`, undefined, { token })).json.error.code).toBe('model_not_found')
  }

  const rules = { allowed_models: ['test-model', 'same-id'], allowed_providers: ['beta', 'indus'] }

  test('ALLOW-01 a key and an agent use only the models and providers on their lists. Others get 403 model_not_allowed and are in no list or preset', async () => {
    await checkLimited((await newKey({ name: 'limited', ...rules })).key)
    await checkLimited((await newAgent('limited', rules)).token)
    // A request without a credential, or with an unrestricted one, sees everything.
    for (const options of [{ token: null }, { token: app.key }])
      expect((await app.call('GET', '/v1/models', undefined, options)).json.data.map((entry: { id: string }) => entry.id)).toContain('alpha-only')
  })

  test("the rules of a key apply to its tokens and to calls in the name of an agent, in addition to the agent's own rules", async () => {
    const { key } = await newKey({ name: 'wide', allowed_models: ['test-model', 'alpha-only'] })
    await newAgent('narrow', { allowed_providers: ['alpha'] })
    const named = { 'x-br-agent-id': 'narrow' }
    expect(await served(key, { model: 'test-model', provider: 'beta' })).toEqual([200, 'beta'])
    expect(await served(key, { model: 'test-model', provider: 'beta' }, named)).toEqual(denied)
    expect(await served(key, { model: 'test-model' }, named)).toEqual([200, 'alpha'])
    expect(await served(key, { model: 'same-id' }, named)).toEqual(denied)
    const made = await app.call('POST', '/v1/me/agents', { name: 'of the wide key' }, { token: key })
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {}, { token: key })).json
    expect(await served(token, { model: 'alpha-only' })).toEqual([200, 'alpha'])
    expect(await served(token, { model: 'same-id' })).toEqual(denied)
  })

  test('a change of the lists applies from the next call on, and null removes a list', async () => {
    const { key, id } = await newKey({ name: 'changing', allowed_models: ['test-model'] })
    const agent = await newAgent('changing', { allowed_models: ['test-model'] })
    const lists = [['alpha-only'], null] as const
    for (const allowed_models of lists) {
      await app.call('PATCH', `/me/keys/${id}`, { allowed_models }, { cookie: owner })
      await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_models })
      for (const token of [key, agent.token]) {
        expect(await served(token, { model: 'alpha-only' })).toEqual([200, 'alpha'])
        expect(await served(token, { model: 'test-model' })).toEqual(allowed_models === null ? [200, 'alpha'] : denied)
      }
    }
  })

  test('with a list of only virtual ids, these may pick any model', async () => {
    const { key } = await newKey({ name: 'presets', allowed_models: ['auto:sovereign'] })
    expect(await served(key, { model: 'auto:sovereign' })).toEqual([200, 'indus'])
    for (const model of ['auto', 'test-model']) expect(await served(key, { model })).toEqual(denied)
    expect(await ids(key, '/v1/models')).toEqual(['auto:sovereign'])
  })
})
