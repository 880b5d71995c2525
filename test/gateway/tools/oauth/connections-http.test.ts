import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../../harness/app.ts'
import { type MovableClock, movableClock } from '../../../harness/clock.ts'
import { type StrictIssuer, startStrictIssuer } from '../../../harness/strict-issuer.ts'
import { until } from '../../../harness/until.ts'
import { type GuardedServer, startGuardedServer } from './guarded-server.ts'

const countConnections = statement<[orgId: number, userId: number], { rows: number }>(
  'test.count_tool_connections',
  `select count(*)::int as rows from tool_connections where org_id = $1::int and user_id = $2::int`,
)

describe('servers to which people connect', () => {
  let app: TestApp
  let clock: MovableClock
  let issuer: StrictIssuer
  let server: GuardedServer
  let owner: string
  let id: string

  beforeAll(async () => {
    issuer = await startStrictIssuer('/tenant')
    server = await startGuardedServer(issuer)
    clock = movableClock()
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: [issuer.hostPort, server.hostPort].join(',') } })
    owner = await app.signIn()
    const auth = { kind: 'oauth_user', client_id: issuer.clientId, client_secret: issuer.clientSecret, scopes: 'tools' }
    const made = await app.call('POST', '/me/tool-servers', { name: 'Crm', slug: 'crm', url: server.url, auth }, { cookie: owner })
    expect([made.status, made.json.server]).toMatchObject([
      201,
      { auth: { kind: 'oauth_user', issuer: issuer.url }, last_error: 'connection_required', era: null },
    ])
    id = made.json.server.id
    await app.call('PATCH', `/me/keys/${app.keyId}`, { allowed_tools: ['crm__*'] }, { cookie: owner })
    await connect(owner, 'owner-at-issuer')
    // The connection of an owner or admin reads the tools.
    await until(async () => (await toolsOf()).length === server.mcp.tools.length, 'tools were read')
    const approved = (await toolsOf()).map(({ name, hash, state }) => ({ name, hash, state }))
    expect(approved.every(({ state }) => state === 'pending')).toBe(true)
    await app.call('POST', `/me/tool-servers/${id}/tools/approve`, { tools: approved.map(({ name, hash }) => ({ name, hash })) }, { cookie: owner })
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
    await issuer.close()
  })
  afterEach(() => {
    const same = (of: Record<string, unknown>) => of
    Object.assign(issuer, { metadata: same, comeBack: () => undefined, refusal: null, life: 3600, sub: 'asha' })
    server.resourceMetadata = same
  })

  const toolsOf = async (): Promise<{ name: string; hash: string; state: string }[]> =>
    (await app.call('GET', `/me/tool-servers/${id}/tools`, undefined, { cookie: owner })).json.tools
  const begin = (cookie: string): Promise<TestReply> => app.call('POST', `/me/tool-servers/${id}/connect`, undefined, { cookie })
  const back = (url: URL, cookie: string): Promise<TestReply> => app.call('GET', `${url.pathname}${url.search}`, undefined, { cookie })
  const consented = async (cookie: string, sub = 'asha'): Promise<URL> => {
    issuer.sub = sub
    const begun = await begin(cookie)
    expect(begun.status, begun.text).toBe(201)
    return issuer.consent(begun.json.authorization_url)
  }
  const connect = async (cookie: string, sub: string): Promise<void> => {
    const reply = await back(await consented(cookie, sub), cookie)
    expect([reply.status, reply.headers.get('content-type')], reply.text).toEqual([200, 'text/html; charset=utf-8'])
  }
  const connections = async (cookie: string, query = '') => (await app.call('GET', `/me/tool-connections${query}`, undefined, { cookie })).json.connections
  const call = (token: string, name = 'echo', args: object = { text: 'hi' }): Promise<TestReply> =>
    app.call('POST', `/v1/tools/crm__${name}/call`, { arguments: args }, { token })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const tokens = () => issuer.requests.filter(({ path }) => path === '/token')
  /** A member with a key of their own that may call the tools, and an agent of that key. */
  const person = async (role: 'member' | 'admin' = 'member'): Promise<TestMember & { key: string; agent: string }> => {
    const member = await app.newMember(role)
    const key = (await app.call('POST', '/me/keys', { name: `key of ${member.userId}`, scope: 'full' }, { cookie: member.cookie })).json
    await app.call('PATCH', `/me/keys/${key.id}`, { allowed_tools: ['crm__*'] }, { cookie: owner })
    const agent = (await app.call('POST', '/v1/me/agents', { name: `agent of ${member.userId}` }, { token: key.key })).json
    const agentId = agent.id ?? agent.agent.id
    await app.call('PATCH', `/v1/me/agents/${agentId}`, { allowed_tools: ['crm__*'] })
    const minted = (await app.call('POST', `/v1/me/agents/${agentId}/token`, {}, { token: key.key })).json
    return { ...member, key: key.key, agent: minted.access_token }
  }

  test('agents act with the connection of the person behind them, and without one the call is refused before anything is sent', async () => {
    const [asha, bala] = [await person(), await person()]
    const before = server.seen.length
    for (const token of [asha.key, asha.agent]) {
      const refused = await call(token)
      expect([...said(refused), refused.json.server, refused.json.server_id, refused.json.console_url]).toEqual([
        403,
        'tool_connection_required',
        'crm',
        id,
        expect.stringMatching(/\/console$/),
      ])
    }
    expect(server.seen.length).toBe(before)
    await connect(asha.cookie, 'asha')
    await connect(bala.cookie, 'bala')
    for (const [token, holder] of [
      [asha.agent, 'asha'],
      [bala.agent, 'bala'],
      [asha.key, 'asha'],
      [app.key, 'owner-at-issuer'],
    ] as const) {
      server.seen.length = 0
      expect((await call(token)).status).toBe(200)
      expect(new Set(server.seen.map(seen => seen.holder))).toEqual(new Set([holder]))
    }
    const nobody = await app.newKey({ withUser: false })
    await app.call('PATCH', `/me/keys/${nobody.keyId}`, { allowed_tools: ['crm__*'] }, { cookie: owner })
    expect(said(await call(nobody.key))).toEqual([403, 'tool_connection_required'])
    const seen = [await app.dump(), app.logLines.join('\n'), JSON.stringify(await connections(owner, '?everybody=true'))].join('\n')
    for (const secret of issuer.secrets) expect(seen.includes(secret), secret.slice(0, 8)).toBe(false)
  })

  test('the consent names the resource, PKCE and a state that works once, in the session that began it, for ten minutes', async () => {
    const asha = await person()
    const begun = await begin(asha.cookie)
    const asked = new URL(begun.json.authorization_url)
    expect(asked.origin + asked.pathname).toBe(`${issuer.url}/authorize`)
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: issuer.clientId,
      resource: server.url,
      scope: 'tools offline_access',
      code_challenge_method: 'S256',
      redirect_uri: `${app.baseUrl}/me/tool-connections/callback`,
    })
    const first = await issuer.consent(begun.json.authorization_url)
    const spent = tokens().length
    const others = [owner, await app.signIn(asha.userId)]
    for (const cookie of others) expect(said(await back(first, cookie))).toEqual([400, 'bad_request'])
    const stranger = await app.otherOrg('Elsewhere')
    expect(said(await back(first, await app.signIn(stranger.userId, stranger.orgId)))).toEqual([400, 'bad_request'])
    expect((await app.call('GET', `${first.pathname}${first.search}`, undefined, { token: asha.agent })).status).toBe(403)
    expect((await app.call('GET', `${first.pathname}${first.search}`, undefined, { token: null })).status).toBe(401)
    expect(tokens().length).toBe(spent)
    expect((await back(first, asha.cookie)).status).toBe(200)
    expect(said(await back(first, asha.cookie))).toEqual([400, 'bad_request'])
    expect(tokens().length).toBe(spent + 1)
    const late = await consented(asha.cookie)
    clock.advance(600_001)
    expect(said(await back(late, asha.cookie))).toEqual([400, 'bad_request'])
    expect(tokens().length).toBe(spent + 1)
  })

  test.each<[string, string, (query: URLSearchParams) => void]>([
    ['without an issuer', 'does not hold', query => query.delete('iss')],
    ['from another issuer', 'does not hold', query => query.set('iss', 'https://else.example.com')],
    [
      'with an error',
      'reported an error',
      query => {
        query.delete('code')
        query.set('error', 'access_denied')
      },
    ],
    ['without a code', 'does not hold', query => query.delete('code')],
  ])('a person who comes back %s is not connected, and no code is sent', async (_what, message, spoil) => {
    const asha = await person()
    issuer.comeBack = spoil
    const url = await consented(asha.cookie)
    const spent = tokens().length
    const reply = await back(url, asha.cookie)
    expect([said(reply), reply.json.error.message]).toEqual([[400, 'bad_request'], expect.stringContaining(message)])
    expect([tokens().length, await connections(asha.cookie)]).toEqual([spent, []])
  })

  test.each<[string, Record<string, unknown>]>([
    ['does not check PKCE', { code_challenge_methods_supported: ['plain'] }],
    ['says nothing about PKCE', { code_challenge_methods_supported: undefined }],
    ['sends people to a script', { authorization_endpoint: 'javascript:alert(1)' }],
    ['sends people into the network', { authorization_endpoint: 'http://127.0.0.1:9/authorize' }],
    ['has no authorization endpoint', { authorization_endpoint: undefined }],
  ])('no consent begins at an issuer that %s', async (_what, change) => {
    issuer.metadata = of => ({ ...of, ...change })
    expect(said(await begin(owner))).toEqual([400, 'bad_request'])
  })

  test('a refresh token is used once, and the consent is needed again when the issuer or the resource moved or the grant ended', async () => {
    const asha = await person()
    const other = await startStrictIssuer()
    const spoilers: [string, () => unknown][] = [
      ['issuer', () => Object.assign(server, { resourceMetadata: (of: object) => ({ ...of, authorization_servers: [other.url] }) })],
      ['metadata', () => Object.assign(issuer, { metadata: (of: object) => ({ ...of, issuer: other.url, token_endpoint: `${other.url}/token` }) })],
      ['resource', () => Object.assign(server, { resourceMetadata: (of: object) => ({ ...of, resource: `http://${server.hostPort}/` }) })],
    ]
    for (const [what, spoil] of spoilers) {
      await connect(asha.cookie, 'asha')
      clock.advance(3_600_000)
      expect((await call(asha.key)).status, what).toBe(200)
      clock.advance(3_600_000)
      spoil()
      const spent = tokens().length
      server.seen.length = 0
      expect(said(await call(asha.key)), what).toEqual([403, 'tool_connection_required'])
      expect(said(await call(asha.key)), what).toEqual([403, 'tool_connection_required'])
      expect([tokens().length, other.requests.length], what).toEqual([spent, 0])
      expect(server.seen.every(({ authorization }) => authorization === undefined)).toBe(true)
      expect(await connections(asha.cookie)).toMatchObject([{ state: 'needs_consent' }])
      server.resourceMetadata = of => of
      issuer.metadata = of => of
    }
    await connect(asha.cookie, 'asha')
    expect(await connections(asha.cookie)).toMatchObject([{ state: 'connected', scopes: ['tools', 'offline_access'] }])
    issuer.refusal = { status: 400, error: 'invalid_grant' }
    clock.advance(3_600_000)
    expect(said(await call(asha.key))).toEqual([403, 'tool_connection_required'])
    expect(issuer.ended.reused).toBe(0)
    await other.close()
  })

  test('people see and end their own connections, admins those of everybody, and others find nothing', async () => {
    const [asha, bala] = [await person(), await person()]
    await connect(asha.cookie, 'asha')
    await connect(bala.cookie, 'bala')
    const [own] = await connections(asha.cookie)
    expect(own).toEqual({
      id: expect.any(String),
      server_id: id,
      server: 'crm',
      user_id: asha.userId,
      email: asha.email,
      issuer: issuer.url,
      scopes: ['tools', 'offline_access'],
      state: 'connected',
      expires_at: expect.stringMatching(/Z$/),
      created_at: expect.stringMatching(/Z$/),
    })
    expect((await app.call('GET', '/me/tool-connections?everybody=true', undefined, { cookie: asha.cookie })).status).toBe(403)
    expect((await app.call('GET', '/me/tool-connections', undefined, { token: asha.agent })).status).toBe(403)
    const all: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = `?everybody=true&server_id=${id}&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`
      const page: { connections: { id: string }[]; next_cursor: string | null } = (
        await app.call('GET', `/me/tool-connections${query}`, undefined, { cookie: owner })
      ).json
      all.push(...page.connections.map(each => each.id))
      cursor = page.next_cursor
    }
    expect([all.includes(own.id), new Set(all).size]).toEqual([true, all.length])
    const stranger = await app.otherOrg('Far away')
    const strange = await app.signIn(stranger.userId, stranger.orgId)
    expect(said(await begin(strange))).toEqual([404, 'not_found'])
    const end = (cookie: string, of = own.id) => app.call('DELETE', `/me/tool-connections/${of}`, undefined, { cookie })
    for (const cookie of [strange, bala.cookie]) expect(said(await end(cookie))).toEqual([404, 'not_found'])
    expect(said(await end(asha.cookie, 'no-such'))).toEqual([404, 'not_found'])
    const revoked = issuer.ended.revoked
    const running = call(asha.agent, 'wait', {})
    await until(() => server.mcp.calls.some(({ name, done }) => name === 'wait' && !done), 'the call runs')
    expect((await end(owner)).status).toBe(200)
    expect(said(await running)).toEqual([503, 'tool_server_unavailable'])
    await until(() => issuer.ended.revoked === revoked + 1, 'revoked at the issuer')
    expect(said(await call(asha.agent))).toEqual([403, 'tool_connection_required'])
    expect(await connections(asha.cookie)).toEqual([])
  })

  test('when a person leaves the organisation, running calls end, and the connection is revoked and deleted', async () => {
    const asha = await person()
    await connect(asha.cookie, 'leaver')
    const before = server.mcp.calls.length
    const running = call(asha.agent, 'wait', {})
    await until(() => server.mcp.calls.length === before + 1, 'the call runs')
    const revoked = issuer.ended.revoked
    expect((await app.call('DELETE', `/me/members/${asha.userId}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await running).status).toBeGreaterThanOrEqual(400)
    await until(() => server.mcp.calls[before]?.cancelled === true, 'the server saw the cancel')
    await until(() => issuer.ended.revoked === revoked + 1, 'revoked at the issuer')
    await until(async () => (await app.db.one(countConnections, app.orgId, asha.userId)).rows === 0, 'deleted')
  })
})
