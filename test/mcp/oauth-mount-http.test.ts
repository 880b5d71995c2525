import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../harness/app.ts'

const usual = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const whoami = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {} } }
/** Returns the JSON-RPC result of an answer, which is JSON or one event. */
const resultOf = ({ text }: TestReply) => JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null')).result

describe('MCP behind an OAuth sign-in', () => {
  let app: TestApp
  let provider: OAuth2Server
  let issuer: string
  let path: string
  let resource: string
  let agentId: number
  let owner: string

  beforeAll(async () => {
    provider = new OAuth2Server()
    await provider.issuer.keys.generate('RS256')
    await provider.start(0, '127.0.0.1')
    issuer = provider.issuer.url ?? ''
    app = await startApp({ env: { MCP_OAUTH_ISSUER: issuer, OUTBOUND_ALLOW: new URL(issuer).host, ANON_RPM: '100000' } })
    path = `/orgs/${app.orgId}/mcp`
    resource = `${app.baseUrl}${path}`
    owner = await app.signIn()
    agentId = (await app.newAgent('asha at the desk')).id
    await trust()
  })
  afterAll(async () => {
    await app?.stop()
    await provider?.stop()
  })

  const trust = async (more: object = {}): Promise<number> => {
    const requested = { name: 'desk', issuer, audience: resource, subject: 'asha', agent_id: agentId, key_id: app.keyId, ...more }
    const made = await app.call('POST', '/me/agent-trust', requested, { cookie: owner })
    expect(made.status, made.text).toBe(201)
    return made.json.id
  }
  const signed = (claims: Record<string, unknown> = {}): Promise<string> =>
    provider.issuer.buildToken({
      scopesOrTransform: (_header, payload) => void Object.assign(payload, { aud: resource, sub: 'asha', scope: 'mcp', ...claims }),
    })
  const post = (body: object, token: string | null, at = path) => app.call('POST', at, JSON.stringify(body), { token, headers: usual })
  const challengeOf = (reply: TestReply) => reply.headers.get('www-authenticate') ?? ''

  test('a request without a credential gets 401, and the challenge names the metadata of the resource', async () => {
    const reply = await post(list, null)
    const metadata = `${app.baseUrl}/.well-known/oauth-protected-resource${path}`
    expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
    expect(challengeOf(reply)).toBe(`Bearer realm="brigade", resource_metadata="${metadata}", scope="mcp"`)
    expect((await app.call('GET', new URL(metadata).pathname, undefined, { token: null })).json).toEqual({
      resource,
      authorization_servers: [issuer],
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
      resource_name: 'Brigade MCP server',
    })
    expect(challengeOf(await post(list, null, '/mcp'))).not.toContain('resource_metadata')
    expect((await app.call('GET', path, undefined, { token: null })).status).toBe(405)
  })

  test("the SDK's own client signs in at the issuer, and calls tools as the agent of the trust rule", async () => {
    let tokens: OAuthTokens | undefined
    let verifier = ''
    let redirected: URL | undefined
    provider.service.once('beforeTokenSigning', token => Object.assign(token.payload, { aud: resource, sub: 'asha', scope: 'mcp' }))
    const transport = () =>
      new StreamableHTTPClientTransport(new URL(resource), {
        authProvider: {
          redirectUrl: 'http://127.0.0.1:9/callback',
          clientMetadata: { redirect_uris: ['http://127.0.0.1:9/callback'] },
          clientInformation: () => ({ client_id: 'desk' }),
          tokens: () => tokens,
          saveTokens: saved => {
            tokens = saved
          },
          redirectToAuthorization: url => {
            redirected = url
          },
          saveCodeVerifier: text => {
            verifier = text
          },
          codeVerifier: () => verifier,
        },
      })
    const first = transport()
    const info = { name: 'desk', version: '1' }
    await expect(new Client(info).connect(first as never)).rejects.toThrow('Unauthorized')
    expect([redirected?.origin, redirected?.searchParams.get('resource'), redirected?.searchParams.get('scope')]).toEqual([issuer, resource, 'mcp'])
    // The person agrees at the issuer, and the issuer redirects the browser back with a code.
    const back = await fetch(redirected ?? '', { redirect: 'manual' })
    await first.finishAuth(new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? '')
    const client = new Client(info)
    await client.connect(transport() as never)
    const who = await client.callTool({ name: 'whoami', arguments: {} })
    expect(who.structuredContent).toMatchObject({ principal: { kind: 'agent', id: agentId }, org: { id: app.orgId } })
    await client.close()
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['another audience', { aud: 'https://elsewhere.example' }, 'another audience'],
    ['the default audience of the organisation', { aud: 'BASE/orgs/ORG' }, 'another audience'],
    ['another subject', { sub: 'mallory' }, 'subject'],
    ['an end in the past', { exp: 1_700_000_000, iat: 1_699_999_000 }, 'expired'],
  ])('a token with %s gets 401 invalid_token', async (_what, claims, why) => {
    const { aud } = claims
    const token = await signed(typeof aud === 'string' ? { aud: aud.replace('BASE', app.baseUrl).replace('ORG', `${app.orgId}`) } : claims)
    const reply = await post(list, token)
    expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
    expect(reply.json.error.message).toContain(why)
    expect(challengeOf(reply)).toContain('error="invalid_token"')
  })

  test('a token without a useful scope gets 403 insufficient_scope. Scope names of the gateway narrow the tools, and mcp gives all scopes of the rule', async () => {
    const none = await post(list, await signed({ scope: 'openid profile' }))
    expect([none.status, none.json.error.code]).toEqual([403, 'forbidden'])
    expect(challengeOf(none)).toMatch(/scope="mcp".*error="insufficient_scope"/)
    const names = async (claims: object) => resultOf(await post(list, await signed({ ...claims }))).tools.map((tool: { name: string }) => tool.name)
    const narrow = await names({ scope: undefined, scp: ['usage:read', 'openid'] })
    expect(narrow).toContain('usage_get')
    expect(narrow).not.toContain('chat')
    expect(await names({})).toContain('chat')
  })

  test("HARD-10 a message at this URL takes from the rate of the token's key", async () => {
    const { key, keyId } = await app.newKey({ rpm: 2 })
    const id = await trust({ name: 'rated', subject: 'rated', key_id: keyId })
    const token = await signed({ sub: 'rated' })
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const replies = []
    for (let n = 0; n < 4; n++) replies.push(await post(ping, token))
    expect(replies.map(reply => reply.status)).toContain(429)
    await until(async () => (await post(ping, key)).status === 429)
    expect((await post(ping, key)).json.error.code).toBe('rate_limit_exceeded')
    await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })
  })

  test('keys and agent tokens of the organisation are accepted too, and those of another organisation get 404. /mcp refuses external tokens', async () => {
    const other = await app.otherOrg('Elsewhere')
    expect((await post(list, app.key)).status).toBe(200)
    expect((await post(list, (await app.newAgent('at the mount')).token)).status).toBe(200)
    expect((await post(list, other.key)).status).toBe(404)
    expect((await post(list, await signed(), '/mcp')).status).toBe(401)
    expect((await post(list, await signed(), `/orgs/${other.orgId}/mcp`)).status).toBe(401)
    expect((await post(list, app.key, '/orgs/x/mcp')).status).toBe(404)
  })

  test('a token is exchanged once for many calls, and ends with the trust rule and with the agent', async () => {
    const lines = async (): Promise<number> =>
      (await app.call('GET', '/me/audit?act=exchangeToken&limit=200', undefined, { cookie: owner })).json.entries.length
    const before = await lines()
    const { id } = await app.newAgent('short lived')
    const rule = await trust({ subject: 'ravi', agent_id: id })
    const token = await signed({ sub: 'ravi' })
    const replies = await Promise.all(Array.from({ length: 10 }, () => post(whoami, token)))
    for (const reply of replies) expect(resultOf(reply).structuredContent.principal).toMatchObject({ kind: 'agent', id })
    expect((await lines()) - before).toBe(1)
    expect((await app.call('DELETE', `/me/agent-trust/${rule}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await post(list, token)).status).toBe(401)
    expect((await post(list, token)).json.error.message).toContain('trust rule')
    await trust({ subject: 'ravi', agent_id: id })
    expect((await post(list, token)).status).toBe(200)
    expect((await app.call('POST', `/v1/me/agents/${id}/revoke`, {})).status).toBe(200)
    await until(async () => (await post(list, token)).status === 401)
  })

  test('a rule that replaces another rule applies from the next call on, and no call in between is refused', async () => {
    const requested = { subject: 'meera', agent_id: agentId }
    const rule = await trust(requested)
    const token = await signed({ sub: 'meera' })
    const names = async () => resultOf(await post(list, token)).tools.map((tool: { name: string }) => tool.name)
    expect(await names()).toContain('chat')
    await trust({ ...requested, scope: 'usage:read' })
    expect((await app.call('DELETE', `/me/agent-trust/${rule}`, undefined, { cookie: owner })).status).toBe(200)
    const [one, other] = await Promise.all([names(), names()])
    expect([one.includes('usage_get'), one.includes('chat'), other]).toEqual([true, false, one])
  })
})
