import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../../harness/app.ts'
import { type StrictIssuer, startStrictIssuer } from '../../../harness/strict-issuer.ts'
import { type ListedServer, startListedServer } from '../registry/listed-server.ts'
import { type GuardedServer, startGuardedServer } from './guarded-server.ts'

const headerValue = 'Bearer static-secret-0123456789'

describe('the credentials of MCP servers', () => {
  let app: TestApp
  let issuer: StrictIssuer
  let owner: string
  let admin: string
  let guarded: Record<'modern' | 'legacy', GuardedServer>
  let listed: Record<'modern' | 'legacy', ListedServer>
  let named = 0

  beforeAll(async () => {
    issuer = await startStrictIssuer()
    const [a, b, c, d] = await Promise.all([
      startGuardedServer(issuer, 'modern'),
      startGuardedServer(issuer, 'legacy'),
      startListedServer('modern'),
      startListedServer('legacy'),
    ])
    guarded = { modern: a, legacy: b }
    listed = { modern: c, legacy: d }
    app = await startApp({
      env: { OUTBOUND_ALLOW: [issuer, a, b, c, d].map(({ hostPort }) => hostPort).join(',') },
      // Every public name leads inward, as after a change of DNS.
      lookup: (_host, options, done) => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)),
    })
    owner = await app.signIn()
    admin = (await app.newMember('admin')).cookie
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([...Object.values(guarded), ...Object.values(listed)].map(server => server.close()))
    await issuer.close()
  })

  const as = (method: string, path: string, body?: unknown, cookie = owner): Promise<TestReply> => app.call(method, `/me/tool-servers${path}`, body, { cookie })
  const client = (kind: string, more: object = {}) => ({ kind, client_id: issuer.clientId, client_secret: issuer.clientSecret, ...more })
  const register = (url: string, auth: object, cookie = owner): Promise<TestReply> => as('POST', '', { name: `Server ${++named}`, url, auth }, cookie)
  const connect = async (id: string, cookie = owner): Promise<TestReply> => {
    const begun = await as('POST', `/${id}/connect`, undefined, cookie)
    if (begun.status !== 201) return begun
    const back = await issuer.consent(begun.json.authorization_url)
    return app.call('GET', `${back.pathname}${back.search}`, undefined, { cookie })
  }
  const statesOf = async (id: string): Promise<string[]> => (await as('GET', `/${id}/tools`)).json.tools.map((tool: { state: string }) => tool.state)

  test('TGW-01 owners and admins register servers of both eras with a header, with client credentials, and for people to connect: tested first, tools pending, secrets sealed and never shown, and no address of any hop leads inward', async () => {
    for (const era of ['modern', 'legacy'] as const) {
      const { [era]: open } = listed
      open.key = headerValue
      const made: [TestReply, number][] = [
        [await register(open.url, { kind: 'header', header_name: 'x-test-key', header_value: headerValue }, admin), 2],
        [await register(guarded[era].url, client('client_credentials'), admin), guarded[era].mcp.tools.length],
        [await register(guarded[era].url, client('oauth_user')), 0],
      ]
      for (const [{ status, json, text }, tools] of made) {
        expect([status, json.sync.new], text).toEqual([201, tools])
        expect(await statesOf(json.server.id)).toEqual(Array.from({ length: tools }, () => 'pending'))
      }
      // People connect with the third one, so its tools are read after that.
      const [{ json }] = made[2] as [TestReply, number]
      expect((await connect(json.server.id)).status).toBe(200)
      expect((await as('POST', `/${json.server.id}/sync`)).json).toMatchObject({ ok: true, server: { era } })
      expect(await statesOf(json.server.id)).toEqual(guarded[era].mcp.tools.map(() => 'pending'))
    }
    // A credential that does not work is noticed by the test, and nothing is saved.
    const count = (await as('GET', '')).json.servers.length
    const wrong: [string, object][] = [
      [listed.modern.url, { kind: 'header', header_name: 'x-test-key', header_value: 'Bearer wrong-secret' }],
      [guarded.modern.url, client('client_credentials', { client_secret: 'wrong-secret' })],
      [listed.legacy.url, client('oauth_user')],
    ]
    for (const [url, auth] of wrong) expect((await register(url, auth)).status).toBe(400)

    // A command is neither an address nor a field, and no field of the server is one.
    for (const url of ['npx -y server', 'stdio:npx', 'file:///bin/sh']) expect((await register(url, { kind: 'none' })).status).toBe(400)
    for (const more of [{ command: 'npx' }, { args: ['-y'] }, { env: {} }])
      expect((await as('POST', '', { name: 'x', url: listed.modern.url, ...more })).status).toBe(400)

    const inward = ['https://10.0.0.1/x', 'https://name-that-moved.example.com/x']
    for (const url of inward) {
      const refused = [
        await register(url, { kind: 'header', header_name: 'x-test-key', header_value: headerValue }),
        await register(url, client('client_credentials')),
        await register(guarded.modern.url, client('client_credentials', { issuer: url })),
      ]
      const { challenge } = guarded.modern
      guarded.modern.challenge = `Bearer resource_metadata="${url}"`
      refused.push(await register(guarded.modern.url, client('oauth_user')))
      guarded.modern.challenge = challenge
      guarded.modern.resourceMetadata = of => ({ ...of, authorization_servers: [url] })
      refused.push(await register(guarded.modern.url, client('oauth_user')))
      guarded.modern.resourceMetadata = of => of
      issuer.metadata = of => ({ ...of, token_endpoint: url })
      refused.push(await register(guarded.modern.url, client('client_credentials')))
      issuer.metadata = of => of
      for (const reply of refused)
        expect([reply.status, reply.json.error.message], url).toEqual([400, expect.stringMatching(/not (a )?public|private, loopback|names another issuer/)])
    }
    expect((await as('GET', '')).json.servers.length).toBe(count)

    const seen = [
      await app.dump(),
      app.logLines.join('\n'),
      (await as('GET', '')).text,
      (await app.call('GET', '/me/tool-connections', undefined, { cookie: owner })).text,
    ]
    for (const secret of [...issuer.secrets, headerValue, headerValue.slice(7)])
      for (const text of seen) expect(text.includes(secret), secret.slice(0, 12)).toBe(false)
  })
})
