/** A whole installation on a data folder or a PostgreSQL database. It contains one of everything that must not get lost. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type RunningGateway, startGateway } from '../../src/composition/serve.ts'
import { loadConfig } from '../../src/platform/config.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { startGuardedServer } from '../gateway/tools/oauth/guarded-server.ts'
import { startListedServer } from '../gateway/tools/registry/listed-server.ts'
import { layMigrated } from '../harness/migrated-folder.ts'
import { startS3Server } from '../harness/s3-server.ts'
import { startStrictIssuer } from '../harness/strict-issuer.ts'
import { startUpstream } from '../harness/upstream-server.ts'

/** Starts the servers that all installations of a test file share. */
export async function startSurroundings() {
  const [upstream, s3, tools, issuer] = await Promise.all([startUpstream(), startS3Server(), startListedServer('modern'), startStrictIssuer()])
  const guarded = await startGuardedServer(issuer)
  tools.key = 'tool-server-key-0123456789'
  const folder = mkdtempSync(join(tmpdir(), 'brigade-ops-'))
  const configFile = join(folder, 'brigade.config.json')
  const route = { provider: 'fixed', input_inr_per_mtok: 10, output_inr_per_mtok: 100, source: 'test', as_of: '2026-01-01' }
  writeFileSync(
    configFile,
    JSON.stringify({
      providers: [
        { id: 'fixed', base_url: upstream.url, auth: 'none', residency: 'global' },
        { id: 'gamma', base_url: upstream.url, residency: 'global', key_shape: '^gm-' },
      ],
      models: [{ id: 'fixed-model', kind: 'chat', context_length: 100_000, routes: [route] }],
    }),
  )
  const env = {
    PORT: '0',
    CONFIG_FILE: configFile,
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    GITHUB_CLIENT_ID: 'brigade',
    GITHUB_CLIENT_SECRET: 'secret',
    OUTBOUND_ALLOW: `${s3.hostPort},${new URL(upstream.url).host},${tools.hostPort},${issuer.hostPort},${guarded.hostPort},127.0.0.1:9`,
    // Tokens and cookies belong to the address of the gateway, so the address stays the same when the data moves.
    BASE_URL: 'http://brigade.test',
    PRICE_FEED_URL: 'off',
  }
  const close = () => Promise.all([upstream, s3, tools, issuer, guarded].map(server => server.close()))
  return { upstream, s3, tools, issuer, guarded, folder, env, close }
}
export type Surroundings = Awaited<ReturnType<typeof startSurroundings>>

/** Starts a gateway on a folder (embedded) or, with DATABASE_URL, on PostgreSQL. */
export async function startOn(surroundings: Surroundings, dataDir: string, more: Readonly<Record<string, string>> = {}) {
  mkdirSync(dataDir, { recursive: true })
  if (more['DATABASE_URL'] === undefined) layMigrated(dataDir)
  const config = loadConfig({ ...surroundings.env, DATA_DIR: dataDir, ...more })
  const gateway = await startGateway(config, { log: silentLog, makesFirstOrg: false })
  const address = gateway.app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { gateway, config, dataDir, call: callerOf(`http://127.0.0.1:${port}`, gateway.baseUrl) }
}
export type Started = Awaited<ReturnType<typeof startOn>>

export interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
}

type Credential = { readonly token?: string; readonly cookie?: string; readonly headers?: Record<string, string> }

function callerOf(baseUrl: string, origin: string) {
  return async (method: string, path: string, body: unknown, { token, cookie, headers = {} }: Credential): Promise<Reply> => {
    const isText = typeof body === 'string'
    const response = await fetch(baseUrl + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(cookie === undefined ? {} : { cookie, origin }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': isText ? 'text/plain' : 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    let json: unknown = null
    try {
      json = JSON.parse(text)
    } catch {
      // The body is not JSON.
    }
    return { status: response.status, text, json, headers: response.headers }
  }
}

/** What a filled installation must still have later. */
export interface Filled {
  readonly orgId: number
  readonly userId: number
  readonly keyId: number
  readonly key: string
  readonly cookie: string
  /** A memory key with three versions; `third ✓` is the last. */
  readonly notes: string
  readonly toolServerId: string
  /** A server to which the owner has connected. */
  readonly connectedServerId: string
  readonly agentId: number
  readonly agentToken: string
  readonly contentRequest: string
  readonly spentInr: number
}

const say = { model: 'fixed-model', messages: [{ role: 'user', content: 'hello' }] }

/** Calls the model once. */
export function chat({ call }: Started, token: string, headers: Record<string, string> = {}): Promise<Reply> {
  return call('POST', '/v1/chat/completions', say, { token, headers })
}

/** Makes an organisation with everything that is sealed, counted or stored. Its memory is in a folder, or with `s3` in a bucket. */
export async function fill(started: Started, surroundings: Surroundings, memory: 'folder' | 's3'): Promise<Filled> {
  const { gateway, call } = started
  const { app } = gateway
  const { upstream, s3, tools } = surroundings
  const { orgId, userId } = await app.orgs.createOrg({ name: 'Safe', ownerEmail: `safe-${memory}@people.test` })
  const { id: keyId, key } = await app.keys.create({ orgId, userId, workspaceId: null, name: 'owner key', scope: 'full', rpmLimit: null, dailyLimit: null })
  const { cookie } = await app.sessions.create(userId, orgId)
  await app.limits.budgets.set(orgId, 'key', String(keyId), 50_000_000n)
  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).toBeLessThan(300)
    return reply
  }
  const place = memory === 'folder' ? { store: 'folder' } : { endpoint: s3.endpoint, bucket: s3.bucket, access_key: s3.accessKey, secret_key: s3.secretKey }
  ok(await call('PUT', '/v1/me/memory-store', place, { token: key }))
  const notes = `users/${userId}/notes.md`
  const other = `users/${userId}/other.md`
  for (const text of ['first', 'second', 'third ✓']) ok(await call('PUT', `/v1/me/memory/o?key=${notes}`, text, { token: key }))
  ok(await call('PUT', `/v1/me/memory/o?key=${other}`, 'another', { token: key }))
  ok(await call('DELETE', `/v1/me/memory/o?key=${other}`, undefined, { token: key }))
  ok(await call('PUT', '/me/org/data-retention', { days: 3 }, { cookie }))
  upstream.script(() => ({ status: 200, body: { data: [{ id: 'gamma-large' }] } }))
  ok(await call('PUT', '/me/byok/gamma', { key: 'gm-0123456789abcdefTAIL' }, { cookie }))
  upstream.reset()
  ok(
    await call(
      'POST',
      '/me/endpoints',
      { name: 'Own', model: 'fixed-model', base_url: upstream.url, upstream_model: 'm', key: 'sk-own-server-0123456789' },
      { cookie },
    ),
  )
  const auth = { kind: 'header', header_name: 'X-Test-Key', header_value: tools.key }
  const toolServer = ok(await call('POST', '/me/tool-servers', { name: 'Tools', url: tools.url, auth }, { cookie }))
  const { issuer, guarded } = surroundings
  const oauth = { kind: 'oauth_user', client_id: issuer.clientId, client_secret: issuer.clientSecret }
  const connected = ok(await call('POST', '/me/tool-servers', { name: 'People', url: guarded.url, auth: oauth }, { cookie }))
  const begin = async () => ok(await call('POST', `/me/tool-servers/${connected.json.server.id}/connect`, undefined, { cookie }))
  const back = await issuer.consent((await begin()).json.authorization_url)
  ok(await call('GET', `${back.pathname}${back.search}`, undefined, { cookie }))
  // Another consent is under way.
  await begin()
  ok(await call('POST', '/me/webhooks', { url: 'http://127.0.0.1:9/hook', event_types: ['key.created'] }, { cookie }))
  ok(await call('GET', '/v1/org/residency/attestation', undefined, { token: key }))
  expect((await call('GET', '/auth/github', undefined, { headers: { 'sec-fetch-site': 'none' } })).status).toBe(302)
  const agent = ok(await call('POST', '/v1/me/agents', { name: 'reviewer' }, { token: key }))
  const minted = ok(await call('POST', `/v1/me/agents/${agent.json.id}/token`, {}, { token: key }))
  const said = ok(await chat(started, key, { 'idempotency-key': 'only-once' }))
  ok(await chat(started, minted.json.access_token, { 'x-br-cache': 'use', 'x-br-cache-ttl': '86400' }))
  await app.limits.flushNow()
  await app.contentLog.flush()
  const filled = {
    orgId,
    userId,
    keyId,
    key,
    cookie,
    notes,
    toolServerId: toolServer.json.server.id,
    connectedServerId: connected.json.server.id,
    agentId: agent.json.id,
    agentToken: minted.json.access_token,
    contentRequest: said.headers.get('x-request-id') ?? '',
  }
  return { ...filled, spentInr: await spentOf(gateway, filled) }
}

/** Returns what the key has spent of its budget in the present month, in rupees. */
export async function spentOf(gateway: RunningGateway, { orgId, keyId }: Pick<Filled, 'orgId' | 'keyId'>): Promise<number> {
  const [status] = await gateway.app.limits.budgets.list(orgId, [{ scope: 'key', scopeId: String(keyId) }])
  return Number(status?.spentUinr ?? -1n) / 1e6
}

/** Expects that everything from `fill` is there and works. */
export async function expectWhole(started: Started, filled: Filled): Promise<void> {
  const { gateway, call } = started
  const { key, notes, cookie, agentToken, agentId, contentRequest, orgId } = filled
  expect(await spentOf(gateway, filled)).toBe(filled.spentInr)
  const read = await call('GET', `/v1/me/memory/o?key=${notes}`, undefined, { token: key })
  expect(read.text).toBe('third ✓')
  expect(read.headers.get('x-br-meta-user')).toBe(String(filled.userId))
  const history = await call('GET', `/v1/me/memory/history?key=${notes}`, undefined, { token: key })
  expect(history.json.versions.map((version: { how: string }) => version.how)).toEqual(['put', 'put', 'put'])
  const first = history.json.versions[2].version
  expect((await call('GET', `/v1/me/memory/history?key=${notes}&version=${first}`, undefined, { token: key })).text).toBe('first')
  expect((await call('GET', `/v1/me/memory/history?key=users/${filled.userId}/other.md`, undefined, { token: key })).json.versions[0].how).toBe('delete')
  expect((await call('GET', '/me/byok', undefined, { cookie })).json.keys[0].provider).toBe('gamma')
  expect((await call('POST', `/me/tool-servers/${filled.toolServerId}/sync`, undefined, { cookie })).json.ok, 'the header of the server can be opened').toBe(
    true,
  )
  expect((await call('POST', `/me/tool-servers/${filled.connectedServerId}/sync`, undefined, { cookie })).json.ok, 'the token can be opened').toBe(true)
  expect((await chat(started, key, { 'idempotency-key': 'only-once' })).status).toBe(409)
  expect((await gateway.app.contentLog.read(orgId, contentRequest))?.model).toBe('fixed-model')
  expect((await chat(started, key)).status).toBe(200)
  expect((await chat(started, agentToken)).status).toBe(200)
  expect((await call('POST', `/v1/me/agents/${agentId}/token`, {}, { token: key })).status).toBeLessThan(300)
  await gateway.app.limits.flushNow()
}

/** Returns the findings of the doctor that are not ok, except those about settings that a test does not have. */
export async function complaints(gateway: RunningGateway): Promise<string[]> {
  const findings = await gateway.app.doctor()
  return findings
    .filter(({ state, what }) => state !== 'ok' && !/^(mail|BASE_URL|provider|catalog|invoice|webhook|sign-in)/i.test(what))
    .map(({ what, detail }) => `${what}: ${detail}`)
}
