/** Requests without a credential, or with a wrong one, from scanners, editors that look for a login, and people with a browser. */
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.stop())

const wellKnown = ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']
const probes = [
  ...wellKnown.flatMap(name => [`/.well-known/${name}`, `/.well-known/${name}/mcp`, `/mcp/.well-known/${name}`]),
  ...[
    '/register',
    '/authorize',
    '/token',
    '/mcp/register',
    '/mcp/authorize',
    '/mcp/token',
    '/oauth/authorize',
    '/oauth/register',
    '/orgs/1/mcp/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/mcp?x=1',
  ],
]
const bodyless = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
const initialize = (protocolVersion: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})

describe('a search for an OAuth login', () => {
  test('without a configured issuer, no organisation has a sign-in path or metadata', async () => {
    for (const [method, path] of [
      ['POST', `/orgs/${app.orgId}/mcp`],
      ['GET', `/.well-known/oauth-protected-resource/orgs/${app.orgId}/mcp`],
    ] as const) {
      const reply = await app.call(method, path, method === 'POST' ? '{}' : undefined, { headers: bodyless })
      expect([reply.status, reply.json.error.code]).toEqual([404, 'not_found'])
    }
  })

  test.each(probes)('%s answers 404 as JSON that says how to sign in, for any method and any Accept header', async path => {
    for (const [method, accept] of [
      ['GET', 'application/json'],
      ['GET', 'text/html,application/xhtml+xml'],
      ['POST', '*/*'],
    ] as const) {
      const reply = await app.call(method, path, method === 'POST' ? { redirect_uris: [] } : undefined, { token: null, headers: { accept } })
      expect([reply.status, reply.json.error.code], `${method} ${path}`).toEqual([404, 'not_found'])
      expect(reply.headers.get('content-type')).toContain('application/json')
      expect(reply.json.error.message).toContain('no OAuth login')
      expect(reply.json.error.message).toContain('Authorization: Bearer')
    }
  })

  test("the gateway's own token endpoint and key set stay available", async () => {
    expect((await app.call('POST', '/oauth/token', undefined, { token: null })).json.error).toBe('invalid_request')
    expect((await app.call('GET', '/oauth/token', undefined, { token: null })).headers.get('allow')).toBe('POST')
    expect((await app.call('GET', '/.well-known/jwks.json', undefined, { token: null })).status).toBe(200)
  })
})

test.each([
  ['GET', '/sse', 'POST /mcp'],
  ['GET', '/mcp/sse', 'POST /mcp'],
  ['POST', '/v1/mcp', 'Did you mean /mcp?'],
  ['GET', '/.well-known/mcp.json', '/.well-known/mcp/server-card.json'],
])('%s %s, a path of other MCP servers, answers 404 and says %s', async (method, path, says) => {
  const reply = await app.call(method, path, method === 'POST' ? {} : undefined, { token: null })
  expect(reply.status).toBe(404)
  expect(reply.json.error.message).toContain(says)
})

describe('a 401 of /mcp', () => {
  const post = (headers: Record<string, string>) => app.call('POST', '/mcp', initialize('2025-11-25'), { token: null, headers: { ...bodyless, ...headers } })

  test('a 401 of /mcp has a challenge that starts no OAuth login, and its message says what to do', async () => {
    const agent = await app.newAgent('ended')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const ended = await app.newKey()
    await app.call('DELETE', `/me/keys/${ended.keyId}`, undefined, { cookie: await app.signIn() })
    const cases: [Record<string, string>, RegExp][] = [
      [{}, /^No credential came\. Send "Authorization: Bearer .*brigade connect/],
      [{ authorization: 'Bearer ' }, /^The credential is empty/],
      [{ authorization: `Bearer ${app.key.slice(0, -4)}aaaa` }, /^This API key is not known/],
      [{ authorization: 'Bearer sk-of-a-provider' }, /^The credential is neither an API key/],
      [{ authorization: `Bearer ${ended.key}` }, /^This API key has been revoked/],
      [{ authorization: `Bearer ${agent.token}` }, /^This agent has been revoked\. Stop/],
      [{ authorization: 'Bearer $BRIGADE_KEY' }, /name of a variable/],
    ]
    for (const [headers, says] of cases) {
      const reply = await post(headers)
      expect([reply.status, reply.json?.error.code], String(says)).toEqual([401, 'invalid_api_key'])
      expect(reply.json.error.message).toMatch(says)
      const challenge = reply.headers.get('www-authenticate')
      expect(challenge).toMatch(/^Bearer realm="brigade", error="invalid_token"/)
      expect(challenge).not.toContain('resource_metadata')
    }
  })

  test('a program that gets /mcp reads JSON that says to use POST', async () => {
    const reply = await app.call('GET', '/mcp', undefined, { token: null, headers: { accept: 'application/json, */*;q=0.8' } })
    expect([reply.status, reply.headers.get('allow'), reply.json.error.code]).toEqual([405, 'POST', 'method_not_allowed'])
  })
})

describe('descriptions of the MCP server', () => {
  test('the card is the same at its three paths, for readers of any origin, also by HEAD', async () => {
    const bodies: string[] = []
    for (const path of ['/.well-known/mcp/server-card.json', '/mcp/server-card', '/.well-known/mcp-server-card']) {
      const reply = await app.call('GET', path, undefined, { token: null, headers: { origin: 'https://directory.example' } })
      expect([reply.status, reply.headers.get('access-control-allow-origin')], path).toEqual([200, '*'])
      bodies.push(reply.text)
      const head = await app.call('HEAD', path, undefined, { token: null })
      expect([head.status, head.headers.get('etag'), head.text], path).toEqual([200, reply.headers.get('etag'), ''])
    }
    expect(new Set(bodies).size).toBe(1)
  })

  test('the server supports every protocol version of the card, and no other version except the draft of October 2024', async () => {
    const card = (await app.call('GET', '/mcp/server-card', undefined, { token: null })).json
    const [newest, ...older] = card.remotes[0].supportedProtocolVersions as string[]
    for (const version of older) {
      const reply = await app.call('POST', '/mcp', initialize(version), { headers: bodyless })
      expect(JSON.parse(/^data: (.*)$/m.exec(reply.text)?.[1] ?? reply.text).result.protocolVersion, version).toBe(version)
    }
    expect(SUPPORTED_PROTOCOL_VERSIONS.filter(version => !older.includes(version))).toEqual(['2024-10-07'])
    const discover = {
      jsonrpc: '2.0',
      id: 1,
      method: 'server/discover',
      params: { _meta: { 'io.modelcontextprotocol/protocolVersion': newest, 'io.modelcontextprotocol/clientCapabilities': {} } },
    }
    const reply = await app.call('POST', '/mcp', discover, {
      headers: { ...bodyless, 'mcp-protocol-version': newest ?? '', 'mcp-method': 'server/discover' },
    })
    expect(reply.json.result.supportedVersions).toEqual([newest])
  })

  test('llms.txt says how to connect: the address, the commands, the toolkit', async () => {
    const { text } = await app.call('GET', '/llms.txt', undefined, { token: null })
    for (const said of [
      `${app.baseUrl}/mcp`,
      'npx brigade connect codex --write',
      'npx brigade mcp',
      'brigade agent token --agent',
      "'brigade-gateway/agents'",
    ])
      expect(text).toContain(said)
    expect(text).not.toMatch(/undefined|\[object/)
  })

  test("the OpenAPI document names the gateway's URL, other documents, and the MCP server", async () => {
    const { json } = await app.call('GET', '/openapi.json', undefined, { token: null })
    expect(json.servers[0].url).toBe(app.baseUrl)
    expect(json.externalDocs.url).toBe(`${app.baseUrl}/llms.txt`)
    expect(json['x-mcp']).toMatchObject({ url: `${app.baseUrl}/mcp`, transport: 'streamable-http', serverCard: `${app.baseUrl}/mcp/server-card` })
  })
})
