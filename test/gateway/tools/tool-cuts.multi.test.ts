import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import { type StrictIssuer, startStrictIssuer } from '../../harness/strict-issuer.ts'
import { startTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.ts'
import { until } from '../../harness/until.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'
import { type GuardedServer, startGuardedServer } from './oauth/guarded-server.ts'
import { processApp, type Registered, type RegisteringApp, register } from './registered.ts'

/** The longest time from the reply of an act to the end of the calls on another process. */
const cutDeadlineMs = 1000
const priceUinr = 2_000_000n
const auth = { kind: 'header', header_name: 'X-Key', header_value: 'Bearer of-the-server-0123' }

describe.runIf(onPostgres)('running calls of tools on another process', () => {
  let fleet: Fleet
  let proxy: TcpProxy
  let here: RegisteringApp
  let there: RegisteringApp
  let cookie: string
  const servers = {} as Record<'mod' | 'leg', McpFixture>
  const registered = {} as Record<'mod' | 'leg', Registered>
  const slugs = ['mod', 'leg'] as const
  /** A server that takes tokens of a person only. */
  let issuer: StrictIssuer
  let guarded: GuardedServer
  let named = 0

  beforeAll(async () => {
    servers.mod = await startMcpFixture('modern')
    servers.leg = await startMcpFixture('legacy')
    issuer = await startStrictIssuer()
    guarded = await startGuardedServer(issuer)
    const env = { CONTROL_POLL_MS: '1000', AGENT_STALE_MS: '3000', OFFLINE_MAX_MS: '60000' }
    fleet = await startFleet({ ...env, OUTBOUND_ALLOW: [servers.mod, servers.leg, issuer, guarded].map(({ hostPort }) => hostPort).join(',') })
    const target = new URL(fleet.database.url ?? '')
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    const first = await fleet.start()
    here = processApp(fleet, first)
    target.host = `127.0.0.1:${proxy.port}`
    there = processApp(fleet, await fleet.start({ DATABASE_URL: target.href }))
    cookie = await fleet.signIn()
    for (const slug of slugs) registered[slug] = await register(here, slug, servers[slug].url, { auth, price_inr_per_call: 2 })
    await registerOfPerson(first.baseUrl)
  })
  afterAll(async () => {
    await fleet?.stop()
    await proxy?.close()
    await Promise.all([...slugs.map(slug => servers[slug]?.close()), guarded?.close()])
    await issuer?.close()
  })

  /** Registers the server that takes tokens of a person, connects the owner with it and approves its tools. */
  async function registerOfPerson(baseUrl: string): Promise<void> {
    const ofPerson = { kind: 'oauth_user', client_id: issuer.clientId, client_secret: issuer.clientSecret }
    const made = await here.call('POST', '/me/tool-servers', { name: 'crm', slug: 'crm', url: guarded.url, auth: ofPerson, price_inr_per_call: 2 }, { cookie })
    const { id } = made.json.server
    issuer.sub = 'owner'
    const begun = await here.call('POST', `/me/tool-servers/${id}/connect`, undefined, { cookie })
    const back = await issuer.consent(begun.json.authorization_url)
    expect((await fetch(`${baseUrl}${back.pathname}${back.search}`, { headers: { cookie }, redirect: 'manual' })).status).toBeLessThan(400)
    const toolsOf = async () => (await here.call('GET', `/me/tool-servers/${id}/tools`, undefined, { cookie })).json.tools
    await until(async () => (await toolsOf()).length > 0, 'tools were read')
    const tools = (await toolsOf()).map(({ name, hash }: { name: string; hash: string }) => ({ name, hash }))
    expect((await here.call('POST', `/me/tool-servers/${id}/tools/approve`, { tools }, { cookie })).status).toBe(200)
  }

  const manage = async (method: string, path: string, body?: unknown): Promise<void> => {
    const reply = await here.call(method, path, body, path.startsWith('/v1/') ? {} : { cookie })
    expect(reply.status, `${method} ${path} ${reply.text}`).toBe(200)
  }
  const ofServers = async (method: string, path: string, bodyOf: (slug: 'mod' | 'leg') => unknown = () => undefined): Promise<void> => {
    for (const slug of slugs) await manage(method, `/me/tool-servers/${registered[slug].id}${path}`, bodyOf(slug))
  }
  async function newCaller(): Promise<{ id: number; token: string }> {
    const agent = await fleet.newAgent(`caller ${named++}`, 50)
    await manage('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['mod__*', 'leg__*', 'crm__*'] })
    return agent
  }

  interface Running {
    readonly server: McpFixture
    hasEnded(): boolean
    readonly answer: Promise<unknown[]>
  }
  /** Begins a call that runs until it is cut, and waits until its server has it. */
  async function begin(app: RegisteringApp, slug: 'mod' | 'leg', token: string): Promise<Running> {
    const server = servers[slug]
    const before = server.calls.length
    let hasEnded = false
    const answer = app
      .call('POST', `/v1/tools/${slug}__wait/call`, {}, { token })
      .then(({ status, json }) => [status, json.error?.code, json.reason])
      .finally(() => {
        hasEnded = true
      })
    await until(() => server.calls.length > before, `a call at ${slug}`)
    return { server, hasEnded: () => hasEnded, answer }
  }
  async function allCut(calls: readonly Running[], expected: unknown[], deadlineMs: number, what: string): Promise<void> {
    await until(() => calls.every(({ hasEnded }) => hasEnded()), what, deadlineMs)
    for (const { answer } of calls) expect(await answer, what).toEqual(expected)
    await until(() => calls.every(({ server }) => server.calls.every(({ cancelled, name }) => name !== 'wait' || cancelled)), `${what}: cancels`)
  }
  /** Waits until the calls of an agent are in the database, and its holds are back. */
  async function settled(agentId: number, calls: number, what: string): Promise<void> {
    const rows = async () => (await fleet.usage()).filter(row => row.agentId === agentId)
    await until(async () => (await rows()).length >= calls, `${what}: rows`)
    await until(async () => (await fleet.leasesOf('agent', agentId)).length === 0, `${what}: holds`)
    expect(
      (await rows()).map(({ outcome, valueUinr }) => [outcome, valueUinr]),
      what,
    ).toEqual(Array(calls).fill(['cut', priceUinr]))
  }

  const acts: readonly { what: string; expected: unknown[]; act(agentId: number): Promise<void>; undo(agentId: number): Promise<void> }[] = [
    {
      what: 'pause of the agent',
      expected: [403, 'agent_paused', undefined],
      act: id => manage('POST', `/v1/me/agents/${id}/pause`),
      undo: id => manage('POST', `/v1/me/agents/${id}/resume`),
    },
    {
      what: 'block of the tool',
      expected: [503, 'tool_server_unavailable', 'tool_blocked'],
      act: () => ofServers('POST', '/tools/block', slug => ({ tools: [`${slug}__wait`] })),
      undo: () => ofServers('POST', '/tools/approve', slug => ({ tools: [{ name: `${slug}__wait`, hash: registered[slug].hashes.get(`${slug}__wait`) }] })),
    },
    {
      what: 'switch of the server',
      expected: [503, 'tool_server_unavailable', 'tool_server_off'],
      act: () => ofServers('POST', '/off'),
      undo: () => ofServers('POST', '/on'),
    },
    {
      what: 'removal of the credential',
      expected: [503, 'tool_server_unavailable', 'tool_server_changed'],
      act: () => ofServers('PATCH', '', () => ({ auth: { kind: 'none' } })),
      undo: () => ofServers('PATCH', '', () => ({ auth })),
    },
    {
      what: 'revocation of the agent',
      expected: [401, 'invalid_api_key', 'agent_revoked'],
      act: id => manage('POST', `/v1/me/agents/${id}/revoke`, {}),
      undo: async () => undefined,
    },
  ]

  /** Revokes the connection of the person behind a running call. */
  async function revokeConnection({ token }: { readonly token: string }): Promise<void> {
    const { mcp } = guarded
    const before = mcp.calls.length
    const answer = there.call('POST', '/v1/tools/crm__wait/call', {}, { token })
    await until(() => mcp.calls.length > before, 'a call with the token of a person')
    const { connections } = (await here.call('GET', '/me/tool-connections', undefined, { cookie })).json
    expect((await here.call('DELETE', `/me/tool-connections/${connections[0].id}`, undefined, { cookie })).status).toBeLessThan(300)
    await until(() => mcp.calls[before]?.cancelled === true, 'the revoke of the connection', cutDeadlineMs)
    const { status, json } = await answer
    expect([status, json.reason]).toEqual([503, 'tool_connection_ended'])
    const next = await there.call('POST', '/v1/tools/crm__wait/call', {}, { token })
    expect([next.status, next.json.error.code]).toEqual([403, 'tool_connection_required'])
    expect(mcp.calls.length).toBe(before + 1)
  }

  test('TGW-08 a revoke, a pause, a block, a switched-off server, a removed credential and a revoked connection cut the calls of tools within a second, with the reason and one row each, and the server sees the cancel', {
    timeout: 60_000,
  }, async () => {
    const cut: { id: number; what: string }[] = []
    for (const { what, expected, act, undo } of acts) {
      const { id, token } = await newCaller()
      const calls = [await begin(there, 'mod', token), await begin(there, 'leg', token)]
      await act(id)
      await allCut(calls, expected, cutDeadlineMs, what)
      const [first] = calls
      const before = first?.server.calls.length
      if (what !== 'removal of the credential')
        expect((await there.call('POST', '/v1/tools/mod__wait/call', {}, { token })).status, `${what}: the next call`).toBeGreaterThanOrEqual(400)
      expect(first?.server.calls.length, what).toBe(before)
      cut.push({ id, what })
      await undo(id)
    }
    const ofPerson = await newCaller()
    await revokeConnection(ofPerson)
    for (const { id, what } of cut) await settled(id, slugs.length, what)
    await settled(ofPerson.id, 1, 'revoked connection')
    expect(await fleet.violations()).toEqual([])
  })

  test('a process without news of the control log cuts the calls of tools, of agents and of keys, and starts none until it has the news again', {
    timeout: 60_000,
  }, async () => {
    const { id, token } = await newCaller()
    const key = await fleet.newKey({})
    await manage('PATCH', `/me/keys/${key.id}`, { allowed_tools: ['mod__*', 'leg__*'] })
    for (const slug of slugs) await until(async () => (await there.call('GET', `/v1/tools/${slug}__wait`, undefined, { token: key.key })).status === 200, slug)
    const calls = [await begin(there, 'mod', token), await begin(there, 'leg', key.key)]
    await proxy.cut()
    await until(() => calls.every(({ hasEnded }) => hasEnded()), 'cut', 10_000)
    expect(await calls[0]?.answer).toEqual([503, 'database_unavailable', undefined])
    expect(await calls[1]?.answer).toEqual([503, 'database_unavailable', 'tools_stale'])
    await until(() => calls.every(({ server }) => server.calls.at(-1)?.cancelled === true), 'cancels')
    const sent = servers.mod.calls.length
    for (const credential of [token, key.key]) {
      const refused = await there.call('POST', '/v1/tools/mod__echo/call', { arguments: { text: 'a' } }, { token: credential })
      expect([refused.status, refused.json.error.code]).toEqual([503, 'database_unavailable'])
    }
    expect(servers.mod.calls.length).toBe(sent)
    // The other process still has the news.
    expect((await here.call('POST', '/v1/tools/mod__echo/call', { arguments: { text: 'a' } }, { token: key.key })).status).toBe(200)
    await proxy.restore()
    for (const credential of [token, key.key])
      await until(
        async () => (await there.call('POST', '/v1/tools/mod__echo/call', { arguments: { text: 'a' } }, { token: credential })).status === 200,
        'calls again',
      )
    await until(async () => (await fleet.usage()).filter(({ agentId }) => agentId === id).length === 2, 'rows')
    expect((await fleet.usage()).filter(({ agentId }) => agentId === id).map(({ outcome }) => outcome)).toEqual(['cut', 'ok'])
    expect(await fleet.violations()).toEqual([])
  })
})
