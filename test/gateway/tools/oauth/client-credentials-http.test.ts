import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../../harness/app.ts'
import { type MovableClock, movableClock } from '../../../harness/clock.ts'
import { type StrictIssuer, startStrictIssuer } from '../../../harness/strict-issuer.ts'
import { until } from '../../../harness/until.ts'
import { register } from '../registered.ts'
import { type GuardedServer, startGuardedServer } from './guarded-server.ts'

describe('servers with client credentials', () => {
  let app: TestApp
  let clock: MovableClock
  let issuer: StrictIssuer
  let modern: GuardedServer
  let legacy: GuardedServer
  let owner: string
  let named = 0

  beforeAll(async () => {
    issuer = await startStrictIssuer()
    ;[modern, legacy] = await Promise.all([startGuardedServer(issuer, 'modern'), startGuardedServer(issuer, 'legacy')])
    clock = movableClock()
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: [issuer.hostPort, modern.hostPort, legacy.hostPort].join(',') } })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([modern.close(), legacy.close()])
    await issuer.close()
  })
  afterEach(() => {
    const document = (of: Record<string, unknown>) => of
    Object.assign(issuer, { metadata: document, refusal: null, life: 3600 })
    modern.resourceMetadata = document
    modern.challenge = `Bearer resource_metadata="http://${modern.hostPort}/.well-known/oauth-protected-resource/mcp"`
  })

  const auth = (more: object = {}) => ({ kind: 'client_credentials', client_id: issuer.clientId, client_secret: issuer.clientSecret, ...more })
  const as = (method: string, path: string, body?: unknown, cookie = owner) => app.call(method, `/me/tool-servers${path}`, body, { cookie })
  const params = (more: object = {}) => ({ name: `Server ${++named}`, slug: `s${named}`, url: modern.url, auth: auth(), ...more })
  const call = (slug: string): Promise<TestReply> => app.call('POST', `/v1/tools/${slug}__echo/call`, { arguments: { text: 'hi' } })
  const tokenRequests = () => issuer.requests.filter(({ path }) => path === '/token')
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const registered = async (url = modern.url) => {
    const slug = `s${++named}`
    const { id } = await register(app, slug, url, { auth: auth() })
    await allowed()
    return { slug, id }
  }
  const allowed = async () => {
    const patterns = (await as('GET', '')).json.servers.map(({ slug }: { slug: string }) => `${slug}__*`)
    await app.call('PATCH', `/me/keys/${app.keyId}`, { allowed_tools: patterns }, { cookie: owner })
  }

  test.each([
    ['modern', () => modern],
    ['legacy', () => legacy],
  ] as const)('the tools of a server of the %s era are read and called with a token of the organisation, and the secret is never shown', async (era, of) => {
    const server = of()
    server.seen.length = 0
    const before = tokenRequests().length
    const made = await as('POST', '', params({ url: server.url, slug: `era-${era}` }))
    expect([made.status, made.json.server, made.json.sync]).toMatchObject([
      201,
      {
        era,
        auth: {
          kind: 'client_credentials',
          header_name: null,
          client_id: issuer.clientId,
          scopes: '',
          issuer: issuer.url,
          client_secret_mask: expect.stringMatching(/^secr….{4}$/),
        },
      },
      { new: server.mcp.tools.length, error: null },
    ])
    expect(tokenRequests().slice(before)).toMatchObject([{ form: { grant_type: 'client_credentials', resource: server.url, scope: 'tools' }, answered: 200 }])
    const { tools } = (await as('GET', `/${made.json.server.id}/tools`)).json
    expect(tools.every(({ state }: { state: string }) => state === 'pending')).toBe(true)
    await as('POST', `/${made.json.server.id}/tools/approve`, { tools: tools.map(({ name, hash }: { name: string; hash: string }) => ({ name, hash })) })
    await allowed()
    expect((await call(`era-${era}`)).json.content).toEqual([{ type: 'text', text: 'echo: hi' }])
    expect(server.seen.some(({ holder }) => holder === 'organisation')).toBe(true)
    expect(server.seen.every(({ authorization, holder }) => (authorization === undefined) === (holder === null))).toBe(true)
    // The token is kept for later calls, and a server that shows it shows a mask.
    expect(tokenRequests().length).toBe(before + 1)
    const shown = await app.call('POST', `/v1/tools/era-${era}__headers/call`, {})
    expect(shown.text).toContain('[secret of the server]')
    const seen = [await app.dump(), app.logLines.join('\n'), shown.text, (await as('GET', '')).text, made.text].join('\n')
    for (const secret of issuer.secrets) expect(seen.includes(secret), secret.slice(0, 8)).toBe(false)
  })

  test('a token is replaced before its end, once for all concurrent calls', async () => {
    const { slug } = await registered()
    const before = tokenRequests().length
    clock.advance(3_530_000)
    expect((await call(slug)).status).toBe(200)
    expect(tokenRequests().length).toBe(before)
    clock.advance(15_000)
    const replies = await Promise.all(Array.from({ length: 12 }, () => call(slug)))
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
    expect(tokenRequests().length).toBe(before + 1)
  })

  test('a token that the server refuses is replaced once, and a server that refuses every token costs one request to the issuer', async () => {
    const { slug } = await registered()
    const before = tokenRequests().length
    issuer.forgetAccess()
    expect((await call(slug)).status).toBe(200)
    expect(tokenRequests().length).toBe(before + 1)
    issuer.forgetAccess()
    const [first, second] = [await call(slug), await call(slug)]
    expect([said(first), said(second)]).toEqual([
      [502, 'tool_server_failed'],
      [502, 'tool_server_failed'],
    ])
    expect(tokenRequests().length).toBe(before + 1)
  })

  test('an issuer that does not answer costs nothing and is left alone, and a token that still works is used meanwhile', async () => {
    const { slug } = await registered()
    issuer.refusal = { status: 503, error: 'temporarily_unavailable' }
    clock.advance(3_550_000)
    expect((await call(slug)).status).toBe(200)
    clock.advance(120_000)
    const before = tokenRequests().length
    const refused = await Promise.all([call(slug), call(slug)])
    for (const reply of refused) {
      expect([...said(reply), Number(reply.headers.get('retry-after')) > 0]).toEqual([503, 'tool_server_unavailable', true])
      expect(reply.json.error.message).toContain('Nothing was sent')
    }
    expect(tokenRequests().length).toBeLessThanOrEqual(before + 1)
  })

  test('a server that names another issuer gets no token any more, and the other issuer gets nothing', async () => {
    const other = await startStrictIssuer()
    const { slug, id } = await registered()
    modern.resourceMetadata = of => ({ ...of, authorization_servers: [other.url] })
    clock.advance(3_700_000)
    const before = tokenRequests().length
    const reply = await call(slug)
    expect(said(reply)).toEqual([502, 'tool_server_failed'])
    expect(reply.json.error.message).toContain('another issuer')
    expect([tokenRequests().length, other.requests.length]).toEqual([before, 0])
    const synced = await as('POST', `/${id}/sync`)
    expect(synced.json.sync).toMatchObject({ error: 'issuer' })
    await other.close()
  })

  test('members register nothing, a credential that is not whole is refused, and no command is taken', async () => {
    const member = (await app.newMember('member')).cookie
    expect((await as('POST', '', params(), member)).status).toBe(403)
    const faults: object[] = [
      auth({ client_secret: undefined }),
      auth({ client_id: undefined }),
      auth({ header_name: 'x-a' }),
      auth({ kind: 'none' }),
      auth({ kind: 'header', header_name: 'x-a', header_value: 'b' }),
      auth({ scopes: 'a  b' }),
      auth({ client_id: 'a\nb' }),
      auth({ issuer: `${issuer.url}?x=1` }),
      auth({ issuer: 'https://127.0.0.1/' }),
      auth({ command: 'sh' }),
    ]
    for (const wrong of faults) expect(said(await as('POST', '', params({ auth: wrong }))), JSON.stringify(Object.keys(wrong))).toEqual([400, 'bad_request'])
    for (const url of ['npx server', 'file:///bin/sh', 'stdio:///bin/sh']) expect((await as('POST', '', params({ url }))).status).toBe(400)
    expect((await as('POST', '', { ...params(), command: 'npx', args: ['x'] })).status).toBe(400)
  })

  test('a change of the address needs the credential again, a new credential replaces the old one, and its tokens are revoked', async () => {
    const { slug, id } = await registered()
    const moved = await as('PATCH', `/${id}`, { url: `${modern.url}/` })
    expect([moved.status, moved.json.error.message]).toEqual([400, expect.stringContaining('Send "auth" with it')])
    const revoked = issuer.ended.revoked
    const changed = await as('PATCH', `/${id}`, { auth: auth({ scopes: 'other' }) })
    expect([changed.status, changed.json.server?.auth.scopes]).toEqual([200, 'other'])
    expect(tokenRequests().at(-1)?.form['scope']).toBe('other')
    await until(() => issuer.ended.revoked === revoked + 1, 'revoked')
    expect((await call(slug)).status).toBe(200)
    expect((await as('DELETE', `/${id}`)).status).toBe(200)
    await until(() => issuer.ended.revoked === revoked + 2, 'revoked again')
  })

  test.each<[string, string, () => unknown]>([
    [
      'the issuer is another one than its metadata say',
      'another issuer',
      () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, issuer: 'https://else.example.com' }) }),
    ],
    [
      'the token endpoint is on a private address',
      'not a public https address',
      () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, token_endpoint: 'http://127.0.0.1:9/token' }) }),
    ],
    [
      'the token endpoint has another scheme',
      'not a public https address',
      () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, token_endpoint: 'javascript:alert(1)' }) }),
    ],
    [
      'the metadata of the resource are on a private address',
      'not public',
      () => Object.assign(modern, { challenge: 'Bearer resource_metadata="http://169.254.169.254/latest"' }),
    ],
    [
      'the resource is another one',
      'another resource',
      () => Object.assign(modern, { resourceMetadata: (of: object) => ({ ...of, resource: 'https://else.example.com/mcp' }) }),
    ],
    [
      'the metadata of the issuer are too large',
      'more than 65536 bytes',
      () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, pad: 'x'.repeat(100_000) }) }),
    ],
    [
      'the token endpoint redirects',
      'redirect, which is not followed',
      () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, token_endpoint: `${issuer.url}/moved` }) }),
    ],
    ['the issuer refuses the client', 'invalid_client', () => Object.assign(issuer, { refusal: { status: 401, error: 'invalid_client' } })],
    ['there are no metadata at all', 'RFC 9728', () => Object.assign(modern, { resourceMetadata: () => null, challenge: null })],
  ])('nothing is saved when %s', async (_what, message, spoil) => {
    spoil()
    const before = (await as('GET', '')).json.servers.length
    const made = await as('POST', '', params())
    expect([made.status, made.json.check_error]).toEqual([400, 'issuer'])
    expect(made.json.error.message).toContain(message)
    expect((await as('GET', '')).json.servers.length).toBe(before)
  })
})
