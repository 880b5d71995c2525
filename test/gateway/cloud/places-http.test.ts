import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

/** Calls of models at addresses with placeholders, whose values the operator or an organisation sets. */
describe('addresses with placeholders', () => {
  let cloud: UpstreamServer
  let app: TestApp
  let port: string
  const values = { resource: 'acme', project: 'search-1' }
  const hosts: string[] = []
  const route = (provider: string, more: object = {}) => ({ provider, upstream_model: 'deployed-4', input_inr_per_mtok: 10, output_inr_per_mtok: 40, ...more })

  beforeAll(async () => {
    cloud = await startUpstream()
    port = new URL(cloud.url).port
    const row = (id: string, more: object = {}) => ({
      id,
      base_url: `http://127.0.0.1:${port}/{project}/{resource}/v1`,
      auth: 'api-key',
      residency: 'india',
      untried: true,
      models_path: null,
      ...more,
    })
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const hosted = { base_url: `http://{resource}.cloud.example:${port}/v1`, residency: 'global' }
        return {
          providers: [
            ...file.providers,
            row('whole', { values: { resource: 'from-file' } }),
            row('half'),
            row('hosted', hosted),
            row('native', { dialect: 'anthropic', auth: 'x-api-key' }),
          ],
          models: [
            ...file.models,
            ...['whole', 'half', 'hosted', 'native'].map(id => ({ id: `${id}-chat`, kind: 'chat', context_length: 100_000, routes: [route(id)] })),
          ],
        }
      },
      env: {
        WHOLE_API_KEY: 'whole-key',
        WHOLE_RESOURCE: 'acme',
        WHOLE_PROJECT: 'search-1',
        HALF_API_KEY: 'half-key',
        HALF_RESOURCE: 'acme',
        NATIVE_API_KEY: 'native-key',
        NATIVE_RESOURCE: 'acme',
        NATIVE_PROJECT: 'search-1',
        OUTBOUND_ALLOW: `127.0.0.1:${port},acme.cloud.example:${port}`,
      },
      lookup: (hostname, options, callback) => {
        hosts.push(hostname)
        if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }])
        else callback(null, '127.0.0.1', 4)
      },
    })
  })
  afterAll(async () => {
    await app.stop()
    await cloud.close()
  })
  afterEach(() => {
    cloud.reset()
    hosts.length = 0
  })

  const chat = (model: string, more: object = {}, key?: string) =>
    app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], ...more }, key === undefined ? {} : { token: key })
  const save = (provider: string, body: object, cookie: string) => app.call('PUT', `/me/byok/${provider}`, body, { cookie })

  test('CLOUD-01 the values of the operator fill the address, the key goes in its header, and the body is what any provider of the format gets', async () => {
    const reply = await chat('whole-chat')
    expect(reply.status).toBe(200)
    expect(reply.headers.get('x-br-provider')).toBe('whole')
    const [sent] = cloud.requests
    // The environment wins over the file, which names another resource.
    expect(sent?.path).toBe('/search-1/acme/v1/chat/completions')
    expect(sent?.headers['api-key']).toBe('whole-key')
    expect(sent?.headers.authorization).toBeUndefined()
    expect(sent?.json).toEqual({ model: 'deployed-4', messages: [{ role: 'user', content: 'hi' }] })

    const native = await app.call('POST', '/v1/messages', { model: 'native-chat', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] })
    expect(native.status).toBe(200)
    expect(cloud.requests.at(-1)).toMatchObject({
      path: '/search-1/acme/v1/messages',
      headers: { 'x-api-key': 'native-key', 'anthropic-version': '2023-06-01' },
    })
  })

  test('CLOUD-01 a row without all its values is not configured, and names the setting; each row of a cloud says that it was never tried', async () => {
    const { json } = await app.call('GET', '/v1/providers')
    const found = (id: string) => json.data.find((row: { id: string }) => row.id === id)
    expect(found('half')).toMatchObject({ configured: false, byok: true, missing: ['HALF_PROJECT'], untried: true })
    expect(found('whole')).toMatchObject({ configured: true, untried: true })
    expect(found('whole').missing).toBeUndefined()
    expect(found('azure')).toMatchObject({ configured: false, missing: ['AZURE_RESOURCE', 'AZURE_API_KEY'], untried: true })
    expect(found('vertex-openai')).toMatchObject({ missing: ['VERTEX_OPENAI_LOCATION', 'VERTEX_OPENAI_PROJECT', 'VERTEX_OPENAI_IDENTITY'], untried: true })
    for (const id of ['azure', 'azure-claude', 'bedrock', 'bedrock-mantle', 'bedrock-mantle-openai', 'bedrock-mantle-claude'])
      expect(found(id)).toMatchObject({ configured: false, byok: true, untried: true })

    const refused = await chat('half-chat')
    expect(refused.status).toBe(400)
    expect(refused.json.error.message).toContain('half is not configured here. The operator can set HALF_PROJECT.')
    expect(cloud.requests).toEqual([])

    const findings = await app.gateway.app.doctor()
    const said = Object.fromEntries(findings.map(({ what, detail }) => [what, detail]))
    expect(said['provider half']).toBe('is not configured: set HALF_PROJECT')
    expect(said['provider whole']).toContain('was never tried against the real service')
  })

  test('CLOUD-01 an organisation sets the values with its own key, and its calls go to its own address, through the guard of user-given URLs', async () => {
    const cookie = await app.signIn()
    cloud.script(request => (request.headers['api-key'] === 'own-key-of-acme' ? {} : { status: 401, body: { error: { message: 'no' } } }))
    const saved = await save('hosted', { key: 'own-key-of-acme', values: { resource: 'acme' }, models: ['deployed-4', 'deployed-mini'] }, cookie)
    expect([saved.status, saved.text]).toEqual([200, expect.stringContaining('"models_discovered":2')])
    const listed = await app.call('GET', '/me/byok', undefined, { cookie })
    expect(listed.json.keys).toContainEqual(expect.objectContaining({ provider: 'hosted', values: { resource: 'acme' } }))
    expect(listed.json.providers).toContainEqual(expect.objectContaining({ id: 'hosted', values: ['resource'], untried: true }))

    const before = cloud.requests.length
    const reply = await chat('hosted-chat')
    expect(reply.status).toBe(200)
    expect(cloud.requests[before]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { host: `acme.cloud.example:${port}`, 'api-key': 'own-key-of-acme' },
    })
    expect(hosts).toContain('acme.cloud.example')
    // A deployment that no list shows is called by its name.
    expect((await chat('hosted/deployed-mini')).status).toBe(200)
    expect(cloud.requests.at(-1)?.json?.['model']).toBe('deployed-mini')
    // Another organisation has neither the key nor the values.
    const other = await app.otherOrg('Other Cloud')
    expect((await chat('hosted-chat', {}, other.key)).json.error.code).toBe('no_route')
    await app.call('DELETE', '/me/byok/hosted', undefined, { cookie })
  })

  test('CLOUD-01 a value is one label of the host or one segment of the path; everything else is refused and nothing is sent', async () => {
    const cookie = await app.signIn()
    const wrong: [string, object][] = [
      ['hosted', { resource: 'evil.example/x?' }],
      ['hosted', { resource: 'acme.evil' }],
      ['hosted', { resource: 'ACME' }],
      ['hosted', { resource: '-acme' }],
      ['hosted', { resource: 'a@b' }],
      ['hosted', { resource: '127.0.0.1:8080/' }],
      ['hosted', {}],
      ['hosted', { resource: 'acme', region: 'eu' }],
      ['half', { resource: 'acme' }],
      ['half', { resource: 'acme', project: '..' }],
      ['half', { resource: 'acme', project: 'a/b' }],
      ['half', { resource: 'acme', project: '%2e%2e' }],
      ['groq', { resource: 'acme' }],
    ]
    for (const [provider, given] of wrong) {
      const reply = await save(provider, { key: 'gsk_own-key', values: given }, cookie)
      expect([given, reply.status, reply.json.error.code]).toEqual([given, 400, 'bad_request'])
    }
    // A proper label that leads to an address which users may not reach.
    const blocked = await save('hosted', { key: 'own-key', values: { resource: 'other' } }, cookie)
    expect(blocked.status).toBeGreaterThanOrEqual(400)
    expect(cloud.requests).toEqual([])
    // A saved key never goes to another address: values come with the key only.
    cloud.script(() => ({}))
    expect((await save('half', { key: 'own-key', values }, cookie)).status).toBe(200)
    expect((await save('half', { values: { ...values, resource: 'other' } }, cookie)).json.error.message).toContain('together with the key')
    expect((await app.call('POST', '/me/byok/half/test', {}, { cookie })).json).toEqual({ status: 'ok' })
    expect(cloud.requests.at(-1)?.path).toContain('/search-1/acme/v1/')
    await app.call('DELETE', '/me/byok/half', undefined, { cookie })
  })

  test("a refusal on the operator's credential does not name the operator's account, and one at the own place of an organisation is unchanged", async () => {
    const cookie = await app.signIn()
    const message =
      'No model projects/search-1/locations/x for arn:aws:bedrock:us-east-1:123456789012:profile/a, arn%3Aaws%3Abedrock%3Aus-east-1%3A210987654321%3Ab, order 123456789012'
    for (const status of [400, 404]) {
      cloud.script({ status, body: { error: { message } } })
      const reply = await chat('whole-chat')
      expect([reply.status, reply.json.error.message]).toEqual([
        status,
        'No model projects/[…]/locations/x for arn:aws:bedrock:us-east-1:[…]:profile/a, arn%3Aaws%3Abedrock%3Aus-east-1%3A[…]%3Ab, order 123456789012',
      ])
    }
    cloud.script(() => ({}))
    expect((await save('whole', { key: 'own-key-four', values: { resource: 'own', project: 'search-1' }, always_use: true }, cookie)).status).toBe(200)
    cloud.script({ status: 400, body: { error: { message } } })
    expect((await chat('whole-chat')).json.error.message).toBe(message)
    await app.call('DELETE', '/me/byok/whole', undefined, { cookie })
  })

  test('CLOUD-01 the place of an organisation proves no residency, so a call that must stay in India does not go there', async () => {
    const cookie = await app.signIn()
    cloud.script(() => ({}))
    expect((await save('whole', { key: 'own-key-two', values: { resource: 'abroad', project: 'p' }, always_use: true }, cookie)).status).toBe(200)
    cloud.reset()
    expect((await chat('whole-chat')).status).toBe(200)
    expect(cloud.requests.at(-1)?.path).toBe('/p/abroad/v1/chat/completions')
    const inIndia = await chat('whole-chat', { data_policy: 'india_only' })
    expect(inIndia.status).toBe(200)
    expect(cloud.requests.at(-1)).toMatchObject({ path: '/search-1/acme/v1/chat/completions', headers: { 'api-key': 'whole-key' } })
    await app.call('DELETE', '/me/byok/whole', undefined, { cookie })
  })
})
