import { decodeJwt, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Binding } from '../../src/gateway/http/edge.ts'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { mcpTools } from '../../src/mcp/tools/tools.ts'
import { type AgentScope, agentScopes, mayCall } from '../../src/platform/security/principal.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { agent } from '../mcp/mount.ts'
import { familyOf, newName, said } from './family.ts'

/** Endpoints that every agent token may call, whatever its scopes. */
const free: Readonly<Record<string, string>> = {
  'GET /v1/me/whoami': 'who it is itself',
  'GET /v1/me/profile': 'how its person requests to work',
  'POST /v1/me/agents/{id}/children': 'children get no more than it has',
  'POST /v1/me/budget-requests': 'it asks for what binds it, and a person answers',
  'POST /oauth/revoke': 'it ends a token, itself for one',
}
/** At the console, an agent reads as a member does. It needs usage:read for every endpoint there, and memory:read for memory too. */
const scopeOf = ({ auth, access }: Binding): AgentScope | undefined => (auth === 'session' ? 'usage:read' : access.agentScope)

const bindings = bindingsOf(endpointTable)
const isOpenToAgents = (binding: Binding): boolean => {
  if (binding.auth === 'public' || binding.auth === 'signature') return false
  if (binding.auth === 'session') return binding.at.startsWith('GET ') && mayCall({ ...agent, role: 'member' }, binding.access).ok
  return mayCall(agent, binding.access).ok
}
const ofAgents = bindings.filter(isOpenToAgents)
const tools = mcpTools(262_144)
const sample: Readonly<Record<string, string>> = { provider: 'alpha', model: 'test-model' }

test('every endpoint that an agent token may call names the scope that it needs, or is listed here as free', () => {
  expect(ofAgents.length).toBeGreaterThan(25)
  expect(
    ofAgents
      .filter(binding => scopeOf(binding) === undefined)
      .map(({ at }) => at)
      .sort(),
  ).toEqual(Object.keys(free).sort())
  for (const scope of agentScopes)
    expect(
      ofAgents.some(binding => scopeOf(binding) === scope),
      scope,
    ).toBe(true)
})

test('endpoints that charge need the scope inference, and endpoints that change memory need memory:write', () => {
  for (const { row, at, access } of bindings.filter(isOpenToAgents)) {
    if (row.inference === true) expect(access.agentScope, at).toBe('inference')
    if (at.includes('/v1/me/memory')) expect(access.agentScope, at).toMatch(at.startsWith('GET ') ? /^memory:read$/ : /^memory:write$/)
  }
})

describe('scopes of agent tokens over HTTP', () => {
  let app: TestApp
  let family: ReturnType<typeof familyOf>
  let id: number
  const tokens = new Map<string, string>()
  beforeAll(async () => {
    app = await startApp({ env: { FOLDER_STORE: 'on' } })
    await app.gateway.app.memory.useFolder(app.orgId)
    family = familyOf(app)
    id = (await app.newAgent(newName('scoped'))).id
    for (const scope of agentScopes) {
      tokens.set(scope, await minted({ scope }))
      tokens.set(`all but ${scope}`, await minted({ scope: agentScopes.filter(other => other !== scope).join(' ') }))
    }
  })
  afterAll(() => app.stop())

  const minted = async (body: object = {}): Promise<string> => (await family.mint(id, body)).json.access_token
  const tokenOf = (name: string): string => tokens.get(name) ?? ''
  const tool = async (name: string, token: string) => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }
    const { text } = await app.call('POST', '/mcp?toolsets=all,tools:search', message, { token, headers: { accept: 'application/json, text/event-stream' } })
    return JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null'))
  }
  const toolsOf = async (token: string): Promise<string[]> => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const { text } = await app.call('POST', '/mcp?toolsets=all,tools:search', message, { token, headers: { accept: 'application/json, text/event-stream' } })
    return JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null')).result.tools.map(({ name }: { name: string }) => name)
  }

  test('a token has every scope unless its mint requests fewer, and the reply and the claims name the scopes', async () => {
    const everything = 'inference memory:read memory:write usage:read tools:call'
    for (const [body, scope] of [
      [undefined, everything],
      [{}, everything],
      [{ scope: everything }, everything],
      [{ scope: ' usage:read   inference usage:read ' }, 'inference usage:read'],
      [{ scope: 'memory:read' }, 'memory:read'],
    ] as const) {
      const reply = await app.call('POST', `/v1/me/agents/${id}/token`, body)
      expect([reply.status, reply.json.scope]).toEqual([200, scope])
      expect(decodeJwt(reply.json.access_token)['scope']).toBe(scope)
      expect((await app.call('GET', '/v1/me/whoami', undefined, { token: reply.json.access_token })).json.scope).toBe(scope)
    }
    for (const wrong of [
      { scope: '' },
      { scope: '  ' },
      { scope: 'admin' },
      { scope: 'inference,usage:read' },
      { scope: 'inference full' },
      { scope: ['inference'] },
      { scope: null },
    ]) {
      const refused = await family.mint(id, wrong)
      expect(said(refused), JSON.stringify(wrong)).toEqual([400, 'bad_request'])
    }
    expect((await family.mint(id, { scope: 'admin' })).json.error.message).toContain('memory:write')
  })

  test('a token lives as long as its mint requests, up to the maximum of the installation', async () => {
    for (const ttl of [1, 60, 900]) {
      const { json } = await family.mint(id, { ttl_s: ttl })
      const { iat = 0, exp = 0 } = decodeJwt(json.access_token)
      expect([json.expires_in, exp - iat]).toEqual([ttl, ttl])
    }
    for (const wrong of [0, -1, 901, 1.5, '60', null]) expect(said(await family.mint(id, { ttl_s: wrong })), String(wrong)).toEqual([400, 'bad_request'])
    expect((await family.mint(id, { ttl_s: 901 })).json.error.message).toContain('900')
  })

  for (const binding of ofAgents) {
    const scope = scopeOf(binding)
    if (scope === undefined) continue
    test(`${binding.at} needs ${scope}`, async () => {
      const [method = '', path = ''] = binding.at.split(' ')
      // The URL of an endpoint about children contains the id of the calling agent.
      const samples: Readonly<Record<string, string>> = path.includes('/{id}/children/') ? { id: String(id) } : sample
      const ask = (token: string) =>
        app.call(
          method,
          path.replace(/\{(\w+)\+?\}/g, (_, name: string) => samples[name] ?? '999999'),
          method === 'GET' || method === 'DELETE' ? undefined : {},
          { token },
        )
      const refused = await ask(tokenOf(`all but ${scope}`))
      expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining(`needs the scope ${scope}`)])
      const own = binding.access.agentScope
      const allowed = await ask(own === undefined || own === scope ? tokenOf(scope) : await minted({ scope: `${scope} ${own}` }))
      expect(allowed.text).not.toContain('needs the scope')
      expect([401, 403]).not.toContain(allowed.status)
    })
  }

  for (const { name, row } of tools.filter(({ row }) => mayCall(agent, row.access).ok)) {
    const scope = row.access.agentScope
    test(`the tool ${name} ${scope === undefined ? 'needs no scope' : `needs ${scope}. Without it, no list shows the tool, and a call says what is missing`}`, async () => {
      for (const [token, isGood] of [
        ...(scope === undefined ? [] : [[tokenOf(`all but ${scope}`), false] as const]),
        [tokenOf(scope ?? 'usage:read'), true] as const,
      ]) {
        expect((await toolsOf(token)).includes(name)).toBe(isGood)
        const { result, error } = await tool(name, token)
        expect(error).toBeUndefined()
        if (isGood) expect(result.structuredContent.code).not.toBe('forbidden')
        else {
          expect([result.isError, result.structuredContent.code, result.structuredContent.status]).toEqual([true, 'forbidden', 403])
          expect(result.content[0].text).toContain(`needs the scope ${scope}`)
        }
      }
    })
  }

  test('endpoints that need no scope accept every token', async () => {
    for (const scope of agentScopes)
      for (const path of ['/v1/me/whoami', '/v1/me/profile']) expect((await app.call('GET', path, undefined, { token: tokenOf(scope) })).status).toBe(200)
  })

  test('a token from before scopes existed has the first four scopes, and unknown scope names grant nothing', async () => {
    const { kid, key } = await app.gateway.app.agents.signingKeys.current()
    const sign = (claims: JWTPayload) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid }).sign(key)
    const { ver: _ver, ...before } = decodeJwt(await minted())
    const old = await sign({ ...before, scope: 'inference' })
    expect((await family.chat(old)).status).toBe(200)
    expect((await app.call('GET', '/v1/usage', undefined, { token: old })).status).toBe(200)
    // A scope that was added later is not among them.
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: old })).json.scope).toBe('inference memory:read memory:write usage:read')
    expect(said(await app.call('GET', '/v1/tools', undefined, { token: old }))).toEqual([403, 'forbidden'])
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents/old.md', 'kept', { token: old })).status).toBe(200)
    expect((await app.call('GET', '/v1/me/memory/o?key=agents/old.md', undefined, { token: old })).text).toBe('kept')
    for (const scope of ['admin memory:everything', '', undefined]) {
      const { scope: _scope, ...rest } = decodeJwt(await minted())
      const token = await sign(scope === undefined ? rest : { ...rest, scope })
      expect(said(await family.chat(token))).toEqual([403, 'forbidden'])
      expect((await app.call('GET', '/v1/me/whoami', undefined, { token })).json.scope).toBe('')
    }
  })

  test('token scopes do not limit keys or people', async () => {
    const inference = await app.newKey({ scope: 'inference' })
    expect((await family.chat(inference.key)).status).toBe(200)
    expect((await app.call('GET', '/v1/usage', undefined, { token: inference.key })).status).toBe(200)
    expect((await app.call('GET', '/me', undefined, { cookie: await app.signIn() })).status).toBe(200)
  })
})
