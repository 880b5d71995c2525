import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'

const secret = 'own-server-key-0123456789-TAIL'
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

describe('custom endpoints', () => {
  let app: TestApp
  let server: OwnServer
  let owner: string
  let admin: string
  let member: string

  beforeAll(async () => {
    server = await startOwnServer()
    app = await startApp({ env: { OUTBOUND_ALLOW: `${server.hostPort},localhost:${server.hostPort.split(':')[1]}` } })
    owner = await app.signIn()
    admin = (await app.newMember('admin')).cookie
    member = (await app.newMember('member')).cookie
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
  })
  beforeEach(async () => {
    server.behave(secret)
    for (const { id } of await listed()) await app.call('DELETE', `/me/endpoints/${id}`, undefined, { cookie: owner })
  })

  const listed = async (cookie = owner) => (await app.call('GET', '/me/endpoints', undefined, { cookie })).json.endpoints
  const params = (more: object = {}) => ({ name: 'Our Server', model: 'test-model', base_url: server.url, upstream_model: 'own-model', key: secret, ...more })
  const post = (more: object = {}, cookie = owner) => app.call('POST', '/me/endpoints', params(more), { cookie })

  test('EDGE-22 a server at another origin never gets the saved key: the change must send the key again or remove it', async () => {
    const { id } = (await post()).json.endpoint
    const patch = (body: object) => app.call('PATCH', `/me/endpoints/${id}`, body, { cookie: owner })
    const url = new URL(server.url)
    const other = server.url.replace(url.host, `localhost:${url.port}`)
    server.behave(secret)
    for (const base_url of [other, server.url.replace('http:', 'https:'), 'https://models.example.com/v1', ' HTTPS://models.example.com/v1 ']) {
      const refused = await patch({ base_url, key: ' ' })
      expect([refused.status, refused.json.error.code, refused.json.error.message], base_url).toEqual([
        400,
        'bad_request',
        expect.stringContaining('Send "key" with it'),
      ])
    }
    expect(server.requests, 'nothing was sent anywhere').toEqual([])
    expect(await listed()).toMatchObject([{ base_url: server.url, key_mask: 'own-…TAIL' }])
    expect((await patch({ base_url: other, key: secret })).json).toMatchObject({ ok: true, endpoint: { base_url: other, key_mask: 'own-…TAIL' } })
    server.behave(null)
    expect((await patch({ base_url: server.url, key: null })).json).toMatchObject({ ok: true, endpoint: { key_mask: null } })
    expect((await patch({ base_url: other })).status, 'without a key there is none to lose').toBe(200)
  })

  test('EDGE-22 a registered endpoint can be changed: its slug stays, its key stays unless a new one is sent, and a new address, model or key is tested first', async () => {
    const { id, slug } = (await post()).json.endpoint
    const patch = (body: object, cookie = owner) => app.call('PATCH', `/me/endpoints/${id}`, body, { cookie })
    const chat = () => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], provider: `byoe:${slug}` })
    server.behave(secret)
    const named = await patch({ name: ' Renamed ', residency: 'india' }, admin)
    expect([named.status, named.json]).toMatchObject([200, { ok: true, endpoint: { id, slug, name: 'Renamed', residency: 'india', key_mask: 'own-…TAIL' } }])
    expect(server.requests, 'a name needs no test').toHaveLength(0)
    const moved = await patch({ base_url: `${server.url}/`, upstream_model: 'second-model' })
    expect(moved.json).toMatchObject({ ok: true, endpoint: { upstream_model: 'second-model', key_mask: 'own-…TAIL' }, compliance: { pass: true } })
    expect(server.requests.length).toBeGreaterThan(0)
    for (const { headers, json } of server.requests) expect([headers.authorization, json?.['model']]).toEqual([`Bearer ${secret}`, 'second-model'])
    server.reset()
    server.behave(secret)
    expect((await chat()).status).toBe(200)
    expect(server.requests.at(-1)?.json?.['model']).toBe('second-model')

    const rekeyed = 'another-key-0123456789-LAST'
    server.behave(rekeyed)
    expect((await patch({ key: rekeyed })).json).toMatchObject({ ok: true, endpoint: { key_mask: 'anot…LAST' } })
    expect((await chat()).status).toBe(200)
    expect((await patch({ key: ' ' })).json.endpoint.key_mask, 'a key of blanks is none that somebody typed').toBe('anot…LAST')
    expect(JSON.stringify([await listed(), await app.dump()])).not.toContain(rekeyed)

    // A change that fails its test changes nothing, whatever other fields it contains.
    const before = await listed()
    const wrong = await patch({ name: 'Broken', key: 'wrong-key-0123456789' })
    expect([wrong.status, wrong.json.error.code, wrong.json.compliance.pass]).toEqual([400, 'bad_request', false])
    for (const [body, code] of [
      [{ base_url: 'https://10.0.0.1/v1' }, 'bad_request'],
      [{ base_url: 'https://localhost./v1' }, 'bad_request'],
      [{ base_url: 'no url' }, 'bad_request'],
      [{ model: 'no-such-model' }, 'bad_model'],
      [{ name: '' }, 'bad_name'],
      [{ slug: 'mine' }, 'bad_request'],
      [{ key: 5 }, 'bad_request'],
    ] as const)
      expect([(await patch(body)).status, (await patch(body)).json.error.code], JSON.stringify(body)).toEqual([400, code])
    expect(await listed()).toEqual(before)
    expect((await chat()).status).toBe(200)
    server.behave(null)
    expect((await patch({ key: null })).json).toMatchObject({ ok: true, endpoint: { key_mask: null } })
    expect((await chat()).status).toBe(200)
    expect(server.requests.at(-1)?.headers.authorization).toBeUndefined()

    expect((await patch({ name: 'x' }, member)).status).toBe(403)
    const other = await app.otherOrg('Other Endpoints')
    const stranger = await app.signIn(other.userId, other.orgId)
    expect((await patch({ name: 'x' }, stranger)).status).toBe(404)
    expect((await app.call('PATCH', '/me/endpoints/999999', { name: 'x' }, { cookie: owner })).status).toBe(404)
  })

  test('ENDP-01 SHAPE-20 an owner or admin registers a server; it is tested immediately, the reply has the result, and only a server that passes is saved', async () => {
    for (const cookie of [owner, admin]) {
      const made = await post({ residency: 'india' }, cookie)
      expect(made.status).toBe(201)
      const slug = cookie === owner ? 'our-server' : 'our-server-2'
      expect(made.json).toEqual({
        ok: true,
        endpoint: {
          id: expect.any(Number),
          slug,
          provider_ref: `byoe:${slug}`,
          model: 'test-model',
          name: 'Our Server',
          base_url: server.url,
          upstream_model: 'own-model',
          key_mask: 'own-…TAIL',
          residency: 'india',
          checked_at: isoTime,
          created_at: isoTime,
        },
        compliance: { pass: true, checks: expect.any(Array) },
      })
      expect(made.json.compliance.checks[0]).toEqual({ name: 'chat', required: true, pass: true, latency_ms: expect.any(Number), detail: expect.any(String) })
    }
    expect(server.requests.map(({ headers, json }) => [headers.authorization, json?.['model']])).toEqual(
      Array.from({ length: 8 }, () => [`Bearer ${secret}`, 'own-model']),
    )
    const refused = await post({ name: 'Wrong key', key: 'some-other-key' })
    expect([refused.status, refused.json.error.code, refused.json.ok]).toEqual([400, 'bad_request', false])
    expect(refused.json.error.message).toContain('was not saved: chat: it answered 401')
    expect(refused.json.compliance).toMatchObject({ pass: false, checks: expect.arrayContaining([expect.objectContaining({ name: 'chat', pass: false })]) })
    expect((await listed()).map(({ slug }: { slug: string }) => slug)).toEqual(['our-server', 'our-server-2'])
    for (const path of ['/me/endpoints', '/me/endpoints/test']) expect((await app.call('POST', path, params(), { cookie: member })).status).toBe(403)
  })

  test('ENDP-02 an invalid URL, a URL that a user may not reach, and an invalid key or model are 400 bad_request', async () => {
    const before = server.requests.length
    for (const more of [
      { base_url: 'not a url' },
      { base_url: '' },
      { base_url: 'ftp://models.example.com/v1' },
      { base_url: 'http://models.example.com/v1' },
      { base_url: `http://user:pass@${server.hostPort}/v1` },
      { base_url: `http://127.0.0.1:${server.port + 1}/v1` },
      { base_url: 'https://127.0.0.1/v1' },
      { base_url: 'https://169.254.169.254/latest' },
      { base_url: `${server.url}?x=1` },
      { base_url: `${server.url}#x` },
      { base_url: `${server.url}/chat/completions` },
      { base_url: `https://models.example.com/${'x'.repeat(3000)}` },
      { base_url: 7 },
      { base_url: undefined },
      { upstream_model: '' },
      { key: 'two words' },
      { key: 'ключ' },
      { residency: 'mars' },
    ])
      for (const path of ['/me/endpoints', '/me/endpoints/test']) {
        const reply = await app.call('POST', path, params(more), { cookie: owner })
        expect([reply.status, reply.json.error.code], JSON.stringify(more).slice(0, 100)).toEqual([400, 'bad_request'])
      }
    expect((await post({ name: ' ' })).json.error.code).toBe('bad_name')
    expect((await post({ name: 'a\nb' })).json.error.code).toBe('bad_name')
    for (const model of ['no-such-model', 'test-embed', 'auto', 'best']) expect((await post({ model })).json.error.code, model).toBe('bad_model')
    expect(server.requests.length).toBe(before)
    expect(await listed()).toEqual([])
  })

  test('ENDP-04 a test of an unregistered server returns the result and writes nothing', async () => {
    await app.gateway.app.limits.flushNow()
    const before = await app.dump()
    const good = await app.call('POST', '/me/endpoints/test', params(), { cookie: admin })
    expect([good.status, good.json.ok, good.json.compliance.pass]).toEqual([200, true, true])
    const bad = await app.call('POST', '/me/endpoints/test', params({ key: 'another-key', name: undefined }), { cookie: owner })
    expect([bad.status, bad.json.ok, bad.json.compliance.pass]).toEqual([200, false, false])
    expect(bad.text).not.toContain('another-key')
    expect(await app.dump()).toBe(before)
    expect(await listed()).toEqual([])
  })

  test('ENDP-05 every role and an agent see the endpoints with a masked key; no table and no log line contains the key', async () => {
    await post()
    server.behave()
    expect((await post({ name: 'No key needed', key: null })).status).toBe(201)
    expect(server.requests.some(({ headers }) => 'authorization' in headers)).toBe(false)
    const agent = await app.newAgent('reader')
    const views = await Promise.all([
      ...[owner, admin, member].map(cookie => app.call('GET', '/me/endpoints', undefined, { cookie })),
      app.call('GET', '/me/endpoints', undefined, { token: agent.token }),
    ])
    for (const { status, json, text } of views) {
      expect(status).toBe(200)
      expect(json.endpoints.map(({ key_mask }: { key_mask: string | null }) => key_mask)).toEqual(['own-…TAIL', null])
      expect(json.endpoints[0].compliance.pass).toBe(true)
      expect(text).not.toContain(secret)
    }
    expect(await app.dump()).not.toContain(secret)
    expect(app.logLines.join('\n')).not.toContain(secret)
  })

  test('ENDP-06 a retest or removal of an unknown endpoint, or of an endpoint of another organisation, is 404', async () => {
    const { id } = (await post()).json.endpoint
    const other = await app.otherOrg('Endpoint Neighbours')
    const stranger = await app.signIn(other.userId, other.orgId)
    for (const [path, cookie] of [
      ['999999', owner],
      ['0', owner],
      ['-1', owner],
      ['abc', owner],
      ['99999999999999999999', owner],
      [String(id), stranger],
    ] as const)
      for (const [method, end] of [
        ['POST', '/retest'],
        ['DELETE', ''],
      ] as const) {
        const reply = await app.call(method, `/me/endpoints/${path}${end}`, undefined, { cookie })
        expect([reply.status, reply.json.error.code], `${method} ${path}`).toEqual([404, 'not_found'])
      }
    expect(await listed(stranger)).toEqual([])
    expect((await app.call('DELETE', `/me/endpoints/${id}`, undefined, { cookie: admin })).json).toEqual({ ok: true })
    expect((await app.call('DELETE', `/me/endpoints/${id}`, undefined, { cookie: admin })).status).toBe(404)
  })

  test('a retest stores the new result and keeps the endpoint, also when it fails', async () => {
    const { id } = (await post()).json.endpoint
    server.misbehave(() => ({ status: 500, body: { error: { message: 'out of memory' } } }))
    const failed = await app.call('POST', `/me/endpoints/${id}/retest`, undefined, { cookie: admin })
    expect([failed.status, failed.json.ok, failed.json.endpoint.id]).toEqual([200, false, id])
    expect((await listed())[0].compliance).toEqual(failed.json.compliance)
    expect(failed.json.compliance.checks[0].detail).toContain('500: out of memory')
    server.behave(secret)
    expect((await app.call('POST', `/me/endpoints/${id}/retest`, undefined, { cookie: admin })).json.ok).toBe(true)
    expect((await listed())[0].compliance.pass).toBe(true)
  })

  test('the URL is stored in the form that the gateway connects to, and every name gives a slug', async () => {
    const shouted = server.url.replace('http://', ' HTTP://')
    expect((await post({ base_url: `${shouted}/./x/..//` })).json.endpoint.base_url).toBe(server.url)
    const slugs = []
    for (const name of ['Überserver №1', '日本', '日本', '--', 'x'.repeat(100)]) slugs.push((await post({ name })).json.endpoint.slug)
    expect(slugs).toEqual(['uberserver-no1', 'endpoint', 'endpoint-2', 'endpoint-3', 'x'.repeat(40)])
  })

  test('concurrent registrations get different slugs, and an organisation has at most 50 endpoints', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => post({ name: 'Same' })))
    expect(made.map(({ json }) => json.endpoint.slug).sort()).toEqual(['same', 'same-2', 'same-3', 'same-4', 'same-5', 'same-6'])
    for (let count = 6; count < 49; count += 7) await Promise.all(Array.from({ length: Math.min(7, 49 - count) }, () => post({ name: 'Same' })))
    const last = await Promise.all([post({ name: 'Same' }), post({ name: 'Same' })])
    expect(last.map(({ status }) => status).sort()).toEqual([201, 400])
    expect((await post()).json.error.code).toBe('cap')
    expect((await listed()).length).toBe(50)
  })
})

describe('custom endpoints when the feature is off', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { CUSTOM_ENDPOINTS: 'off' } })
  })
  afterAll(() => app.stop())

  test('ENDP-03 every custom-endpoint route is 400 unavailable while the feature is off; the role is checked before this, and the body is not checked', async () => {
    const owner = await app.signIn()
    const member = (await app.newMember('member')).cookie
    for (const [method, path] of [
      ['GET', '/me/endpoints'],
      ['POST', '/me/endpoints'],
      ['POST', '/me/endpoints/test'],
      ['POST', '/me/endpoints/1/retest'],
      ['DELETE', '/me/endpoints/1'],
    ] as const) {
      const reply = await app.call(method, path, method === 'POST' ? { nonsense: true } : undefined, { cookie: owner })
      expect([reply.status, reply.json.error.code], `${method} ${path}`).toEqual([400, 'unavailable'])
      expect(reply.json.error.message).toContain('CUSTOM_ENDPOINTS')
      if (method !== 'GET') expect((await app.call(method, path, undefined, { cookie: member })).status).toBe(403)
    }
  })
})
