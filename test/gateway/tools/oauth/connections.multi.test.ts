import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../../src/platform/db/db.ts'
import { onPostgres } from '../../../harness/database.ts'
import { type Fleet, startFleet } from '../../../harness/fleet.ts'
import type { GatewayProcess } from '../../../harness/process.ts'
import { type StrictIssuer, startStrictIssuer } from '../../../harness/strict-issuer.ts'
import { until } from '../../../harness/until.ts'
import { type GuardedServer, startGuardedServer } from './guarded-server.ts'

const addPerson = statement<[email: string], { id: number }>(
  'test.tool_connections_add_person',
  `insert into users (email, name, created_at) values ($1::text, 'P', now()) returning id`,
)
const addMember = statement<[orgId: number, userId: number]>(
  'test.tool_connections_add_member',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, 'member', now())`,
)
const makeDue = statement<[orgId: number, userId: number]>(
  'test.tool_connections_make_due',
  `update tool_connections set renew_at = now() - interval '1 hour', expires_at = now() - interval '1 hour' where org_id = $1::int and user_id = $2::int`,
)
const forgetClaims = statement<[orgId: number]>(
  'test.tool_connections_forget_claims',
  `update tool_connections set renewing_until = now() - interval '1 hour' where org_id = $1::int and renewing_until is not null`,
)
const rowsOf = statement<[orgId: number, userId: number], { version: number }>(
  'test.tool_connections_rows',
  `select version from tool_connections where org_id = $1::int and user_id = $2::int`,
)

/** Longest time from a change in one process to the end of a running call in another. */
const cutMs = 2_000

describe.runIf(onPostgres)('connections of people in several processes', () => {
  let fleet: Fleet
  let issuer: StrictIssuer
  let server: GuardedServer
  let processes: GatewayProcess[]
  let owner: string
  let serverId: string

  beforeAll(async () => {
    issuer = await startStrictIssuer()
    server = await startGuardedServer(issuer)
    fleet = await startFleet({ OUTBOUND_ALLOW: [issuer.hostPort, server.hostPort].join(',') })
    processes = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    owner = await fleet.signIn()
    const auth = { kind: 'oauth_user', client_id: issuer.clientId, client_secret: issuer.clientSecret }
    serverId = (await as(owner, 'POST', '/me/tool-servers', { name: 'Crm', slug: 'crm', url: server.url, auth })).json.server.id
    await connect(owner, 'owner')
    const toolsOf = async () => (await as(owner, 'GET', `/me/tool-servers/${serverId}/tools`)).json.tools
    await until(async () => (await toolsOf()).length > 0, 'tools were read')
    const tools = (await toolsOf()).map(({ name, hash }: { name: string; hash: string }) => ({ name, hash }))
    await as(owner, 'POST', `/me/tool-servers/${serverId}/tools/approve`, { tools })
  })
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
    await issuer?.close()
  })

  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  const send = async (at: number, method: string, path: string, headers: Record<string, string>, body?: object): Promise<{ status: number; json: any }> => {
    const response = await fetch(`${(processes[at] as GatewayProcess).baseUrl}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : null }
  }
  const as = async (cookie: string, method: string, path: string, body?: object, at = 0) => {
    const reply = await send(at, method, path, { cookie }, body)
    expect(reply.status, `${method} ${path} ${JSON.stringify(reply.json)}`).toBeLessThan(300)
    return reply
  }
  const connect = async (cookie: string, sub: string): Promise<void> => {
    issuer.sub = sub
    const begun = await as(cookie, 'POST', `/me/tool-servers/${serverId}/connect`)
    // The person comes back to another process than the one that began.
    const back = await issuer.consent(begun.json.authorization_url)
    await as(cookie, 'GET', `${back.pathname}${back.search}`, undefined, 1)
  }
  const call = (at: number, token: string, tool = 'echo') =>
    send(at, 'POST', `/v1/tools/crm__${tool}/call`, { authorization: `Bearer ${token}` }, { arguments: tool === 'echo' ? { text: 'hi' } : {} })
  const everywhere = (token: string, each = 8) => Promise.all(Array.from({ length: each * 3 }, (_, i) => call(i % 3, token)))
  const refreshes = () => issuer.requests.filter(({ form }) => form['grant_type'] === 'refresh_token')
  /** A member with an agent that may call the tools. */
  const person = async (name: string) => {
    const { id: userId } = await fleet.db.one(addPerson, `${name}@fleet.test`)
    await fleet.db.exec(addMember, fleet.orgId, userId)
    const cookie = await fleet.signIn(userId)
    const key = (await as(cookie, 'POST', '/me/keys', { name: `key of ${name}`, scope: 'full' })).json
    const bearer = { authorization: `Bearer ${key.key}` }
    const agent = (await send(0, 'POST', '/v1/me/agents', bearer, { name: `agent of ${name}` })).json
    await as(owner, 'PATCH', `/me/agents/${agent.id}`, { allowed_tools: ['crm__*'] })
    const token = (await send(0, 'POST', `/v1/me/agents/${agent.id}/token`, bearer, {})).json.access_token as string
    return { userId, cookie, token }
  }

  test('TGW-10 agents act with the connection of the person behind them, three processes refresh it once, a moved issuer gets nothing, and it ends when the person leaves', async () => {
    const [asha, bala] = [await person('asha'), await person('bala')]
    expect((await call(0, asha.token)).json.error.code).toBe('tool_connection_required')
    // The issuer demands PKCE and the resource, and sends its name back.
    await connect(asha.cookie, 'asha')
    await connect(bala.cookie, 'bala')
    await fleet.db.exec(makeDue, fleet.orgId, asha.userId)
    const first = await everywhere(asha.token)
    expect(first.map(({ status }) => status)).toEqual(first.map(() => 200))
    expect(refreshes()).toMatchObject([{ form: { resource: server.url }, answered: 200 }])
    // The server forgets the token while every process has it.
    server.seen.length = 0
    issuer.forgetAccess('asha')
    const second = await everywhere(asha.token)
    expect(second.map(({ status }) => status)).toEqual(second.map(() => 200))
    expect([refreshes().length, issuer.ended.reused]).toEqual([2, 0])
    expect(new Set(server.seen.map(({ holder }) => holder ?? 'refused'))).toEqual(new Set(['asha', 'refused']))
    expect((await call(2, bala.token)).status).toBe(200)
    expect(server.seen.at(-1)?.holder).toBe('bala')

    const other = await startStrictIssuer()
    server.resourceMetadata = of => ({ ...of, authorization_servers: [other.url] })
    await fleet.db.exec(makeDue, fleet.orgId, bala.userId)
    issuer.forgetAccess('bala')
    const spent = refreshes().length
    const moved = await everywhere(bala.token, 2)
    expect(moved.map(({ json }) => json.error.code)).toEqual(moved.map(() => 'tool_connection_required'))
    expect([refreshes().length, other.requests.length]).toEqual([spent, 0])
    expect((await as(bala.cookie, 'GET', '/me/tool-connections')).json.connections).toMatchObject([{ state: 'needs_consent' }])
    server.resourceMetadata = of => of
    await other.close()

    const before = server.mcp.calls.length
    const running = call(2, asha.token, 'wait')
    await until(() => server.mcp.calls.length === before + 1, 'the call runs')
    const revoked = issuer.ended.revoked
    await as(owner, 'DELETE', `/me/members/${asha.userId}`)
    await until(() => server.mcp.calls[before]?.cancelled === true, 'the server saw the cancel', cutMs)
    expect((await running).status).toBeGreaterThanOrEqual(400)
    await until(() => issuer.ended.revoked === revoked + 1, 'revoked at the issuer')
    await until(async () => (await fleet.db.many(rowsOf, fleet.orgId, asha.userId)).length === 0, 'deleted')
    expect((await call(1, asha.token)).status).toBe(401)
  })

  test('a connection that ends in one process cuts its running calls in the others within two seconds', async () => {
    const chen = await person('chen')
    await connect(chen.cookie, 'chen')
    const before = server.mcp.calls.length
    const running = [1, 2].map(at => call(at, chen.token, 'wait'))
    await until(() => server.mcp.calls.length === before + 2, 'the calls run')
    const [{ id }] = (await as(chen.cookie, 'GET', '/me/tool-connections')).json.connections
    await as(chen.cookie, 'DELETE', `/me/tool-connections/${id}`)
    await until(() => server.mcp.calls.slice(before).every(({ cancelled }) => cancelled), 'both were cancelled', cutMs)
    for (const reply of await Promise.all(running)) expect([reply.status, reply.json.error.code]).toEqual([503, 'tool_server_unavailable'])
    for (const at of [0, 1, 2]) expect((await call(at, chen.token)).json.error.code).toBe('tool_connection_required')
  })

  test('when a process dies between the answer of the issuer and its own write, the person must consent again, and a new consent works', async () => {
    const devi = await person('devi')
    await connect(devi.cookie, 'devi')
    await fleet.db.exec(makeDue, fleet.orgId, devi.userId)
    const doomed = processes[2] as GatewayProcess
    issuer.afterIssue = async () => {
      issuer.afterIssue = async () => undefined
      await doomed.kill()
    }
    await expect(call(2, devi.token)).rejects.toThrow()
    expect(issuer.ended.reused).toBe(0)
    // The lease of the dead process ends.
    await fleet.db.exec(forgetClaims, fleet.orgId)
    expect((await call(0, devi.token)).json.error.code).toBe('tool_connection_required')
    expect(issuer.ended.reused).toBe(1)
    await connect(devi.cookie, 'devi')
    expect((await call(1, devi.token)).status).toBe(200)
  })
})
