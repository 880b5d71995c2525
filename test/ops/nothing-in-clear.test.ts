/** Uses everything that receives a secret or a prompt. Afterwards, every stored byte is searched for them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp, until } from '../harness/app.ts'
import { foundIn, keptBytes } from '../harness/kept-bytes.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'

let app: TestApp
let own: UpstreamServer

beforeAll(async () => {
  own = await startUpstream()
  app = await startApp({
    env: { OUTBOUND_ALLOW: new URL(own.url).host },
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      return {
        ...file,
        providers: [...file.providers, { id: 'keyed', base_url: urls.beta, residency: 'global', auth: 'bearer', byok: true, key_shape: '^sk-keyed-.{10,}$' }],
      }
    },
  })
  const models = (request: { path: string }) =>
    request.path.endsWith('/models') ? { status: 200, body: { object: 'list', data: [{ id: 'discovered-1', object: 'model' }] } } : {}
  app.beta.script(models)
})
afterAll(async () => {
  await app.stop()
  await own.close()
})

const countContent = statement<[], { rows: number }>('test.nothing_in_clear_count_content', `select count(*)::int as "rows" from content_log`)

test('AUTH-19 after a full run, no API key, provider key, cookie, token or prompt is stored in clear in the database, the journal or the log', async () => {
  const secrets = new Map<string, string>([['owner key', app.key]])
  const cookie = await app.signIn()
  secrets.set('cookie', cookie.split('=')[1] ?? '')
  const prompt = 'the-launch-date-is-the-ninth-of-march'
  const say = { model: 'test-model', messages: [{ role: 'user', content: prompt }] }
  const answer = 'the-answer-is-a-very-private-sentence'
  app.alpha.script(() => ({ chunks: [answer] }))
  secrets.set('prompt', prompt).set('answer', answer)

  const made = await app.call('POST', '/me/keys', { name: 'made here' }, { cookie })
  expect(made.status).toBe(201)
  secrets.set('new key', made.json.key)
  const rotated = await app.call('POST', `/me/keys/${made.json.id}/rotate`, { overlap_days: 1 }, { cookie })
  expect(rotated.status).toBe(200)
  secrets.set('rotated key', rotated.json.key)

  // Lists show only the start of a key.
  const list = (await app.call('GET', '/me/keys', undefined, { cookie })).text
  expect(list).toContain(rotated.json.key.slice(0, 12))
  for (const name of ['owner key', 'new key', 'rotated key']) expect(list, name).not.toContain(secrets.get(name)?.slice(0, 20))

  const providerKey = 'sk-keyed-0123456789abcdefghij'
  secrets.set('provider key', providerKey)
  expect((await app.call('PUT', '/me/byok/keyed', { key: providerKey, label: 'ours' }, { cookie })).status).toBe(200)
  expect((await app.call('POST', '/v1/chat/completions', { ...say, model: 'keyed/discovered-1' })).status).toBe(200)

  const serverKey = 'sk-own-server-0123456789abcdef'
  secrets.set('own server key', serverKey)
  const endpoint = { name: 'Own', model: 'test-model', base_url: own.url, upstream_model: 'm', key: serverKey }
  const registered = await app.call('POST', '/me/endpoints', endpoint, { cookie })
  expect(registered.status, registered.text).toBe(201)
  expect((await app.call('POST', '/v1/chat/completions', { ...say, provider: registered.json.endpoint.provider_ref })).status).toBe(200)

  const requestKey = 'sk-request-0123456789abcdefgh'
  secrets.set('upstream_key', requestKey)
  expect((await app.call('POST', '/v1/chat/completions', { ...say, model: 'alpha-only', upstream_key: requestKey })).status).toBe(200)

  const agent = await app.newAgent('quiet')
  secrets.set('agent token', agent.token)
  expect((await app.call('POST', '/v1/chat/completions', { ...say, stream: true }, { token: agent.token })).status).toBe(200)

  // When an organisation stores content, the content is sealed.
  expect((await app.call('PUT', '/me/org/data-retention', { days: 3 }, { cookie })).status).toBe(200)
  expect((await app.call('POST', '/v1/chat/completions', say)).status).toBe(200)
  expect((await app.call('POST', '/v1/chat/completions', { ...say, stream: true })).status).toBe(200)

  // Texts in refused requests must not be stored either.
  app.alpha.script({ status: 400, body: { error: { message: `bad: ${prompt}`, type: 'invalid_request_error', code: null } } })
  await app.call('POST', '/v1/chat/completions', { ...say, model: 'alpha-only' })
  await app.call('PUT', '/me/byok/keyed', { key: 'wrong-shape-but-still-a-secret-9876' }, { cookie })
  secrets.set('refused provider key', 'wrong-shape-but-still-a-secret-9876')
  await app.call('GET', '/v1/models', undefined, { token: 'br-not-a-key-but-close-0123456789' })
  secrets.set('refused key', 'br-not-a-key-but-close-0123456789')
  await app.call('POST', '/me/members', { email: 'new@people.test', role: 'member' }, { cookie })

  await until(async () => (await app.db.one(countContent)).rows >= 2)
  const kept = await keptBytes(app)
  expect(foundIn(kept, secrets)).toEqual([])
  // The search itself works, because it finds texts that are stored on purpose.
  expect(kept.get('database')).toContain('made here')
  expect([...kept.keys()].some(place => place.includes('journal'))).toBe(true)
})
