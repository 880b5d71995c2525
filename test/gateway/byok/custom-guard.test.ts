/** Addresses to which a custom endpoint may not lead. Listeners at these addresses count connections. */
import { once } from 'node:events'
import { type AddressInfo, createServer, isIP, type LookupFunction, type Server } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'

const insertEndpoint = statement<[orgId: number, slug: string, baseUrl: string]>(
  'test.insert_custom_endpoint',
  `insert into custom_endpoints (org_id, slug, name, model_id, base_url, upstream_model, compliance, checked_at, created_at)
   values ($1::int, $2::text, 'X', 'test-model', $3::text, 'm', '{"pass":true,"checks":[]}', now(), now())`,
)

const deleteEndpoints = statement<[orgId: number]>('test.delete_custom_endpoints', `delete from custom_endpoints where org_id = $1::int`)

/** A TCP listener that accepts connections and sends nothing. */
interface Trap {
  readonly port: number
  readonly connections: () => number
  close(): Promise<void>
}

async function startTrap(host: string): Promise<Trap> {
  let connections = 0
  const server: Server = createServer(socket => {
    connections++
    socket.destroy()
  })
  server.listen(0, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => new Promise(done => server.close(() => done())),
  }
}

/** The answers of the resolver by name. Each query takes the next answer, and the last answer repeats. */
const names: Record<string, string[][]> = {
  localhost: [['127.0.0.1', '::1']],
  'localhost.': [['127.0.0.1']],
  'private.test': [['127.0.0.1']],
  'ten.test': [['10.0.0.1']],
  'both.test': [['93.184.216.34', '127.0.0.1']],
  'mapped.test': [['::ffff:127.0.0.1']],
  'nat64.test': [['64:ff9b::7f00:1']],
  'metadata.test': [['169.254.169.254']],
  'nothing.test': [[]],
  // Nobody has the first address, so nothing answers there.
  'rebind.test': [['2d00::1'], ['127.0.0.1']],
  'permitted.test': [['127.0.0.1']],
}

describe('forbidden addresses of custom endpoints', () => {
  let app: TestApp
  let server: OwnServer
  let trap: Trap
  let owner: string
  let asked: string[] = []
  const lookup: LookupFunction = (hostname, _options, callback) => {
    const answers = names[hostname]
    if (answers === undefined) return callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), '', 0)
    const found = answers[Math.min(asked.filter(name => name === hostname).length, answers.length - 1)] ?? []
    asked.push(hostname)
    callback(
      null,
      found.map(address => ({ address, family: isIP(address) })),
    )
  }

  beforeAll(async () => {
    server = await startOwnServer()
    trap = await startTrap('127.0.0.1')
    app = await startApp({
      lookup,
      env: { OUTBOUND_ALLOW: `${server.hostPort},permitted.test:${server.port}`, CONNECT_TIMEOUT_MS: '300', CIRCUIT_FAILURES: '1000' },
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await trap.close()
    await server.close()
  })
  beforeEach(async () => {
    await app.db.exec(deleteEndpoints, app.orgId)
    asked = []
    server.behave()
  })

  const post = (baseUrl: string, path = '/me/endpoints') =>
    app.call('POST', path, { name: 'X', model: 'test-model', base_url: baseUrl, upstream_model: 'm', key: 'key-of-the-server' }, { cookie: owner })
  const chat = (provider: string) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], provider })
  /** Puts rows into the database that a registration would have refused. */
  const store = async (urls: readonly string[]) => {
    await app.db.exec(deleteEndpoints, app.orgId)
    for (const [index, url] of urls.entries()) await app.db.exec(insertEndpoint, app.orgId, `stored-${index}`, url)
    // A change of another endpoint makes every process read all endpoints again.
    const { json } = await post(server.url)
    await app.call('DELETE', `/me/endpoints/${json.endpoint.id}`, undefined, { cookie: owner })
  }
  const hosts = (port: number): string[] =>
    [
      ...['127.0.0.1', '2130706433', '0x7f.1', '0x7f000001', '127.1', '017700000001', '127.0.0.1.', '%31%32%37.0.0.1', '0', '0.0.0.0'],
      ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::127.0.0.1]', '[2002:7f00:1::]', '[fe80::1]', '[fd00::1]', '[ff02::1]'],
      ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '169.254.169.254', '224.0.0.1', '255.255.255.255', '198.18.0.1'],
      ...Object.keys(names).filter(name => !['rebind.test', 'permitted.test', 'nothing.test'].includes(name)),
      'user:password@127.0.0.1',
    ].map(host => `${host}:${port}`)

  test('ENDP-08 private, loopback, link-local and other reserved targets are refused with 400 at registration, and a stored server at such a target gets no connection', async () => {
    const urls = hosts(trap.port).flatMap(host => [`https://${host}/v1`, `http://${host}/v1`])
    for (const url of urls)
      for (const path of ['/me/endpoints', '/me/endpoints/test']) {
        const reply = await post(url, path)
        expect([reply.status, reply.json.error?.code, reply.json.compliance], `${path} ${url}`).toEqual([400, 'bad_request', undefined])
      }
    for (let from = 0; from < urls.length; from += 40) {
      await store(urls.slice(from, from + 40))
      for (const slug of urls.slice(from, from + 40).keys()) {
        const reply = await chat(`byoe:stored-${slug}`)
        expect([reply.status, reply.json.error.code], urls[from + slug]).toEqual([502, 'all_routes_failed'])
        expect(reply.json.error.message, urls[from + slug]).toMatch(/BLOCKED_ADDRESS|OUTBOUND_ALLOW|must not carry a user name/)
      }
    }
    expect(trap.connections()).toBe(0)

    // The name resolves to a public address at the first look-up, and to a private one when the gateway connects.
    await store([`https://rebind.test:${trap.port}/v1`])
    asked = []
    expect((await chat('byoe:stored-0')).json.error.message).not.toContain('BLOCKED')
    expect((await chat('byoe:stored-0')).json.error.message).toContain('BLOCKED_ADDRESS')
    expect(asked).toEqual(['rebind.test', 'rebind.test'])
    asked = []
    expect((await post(`https://rebind.test:${trap.port}/v1`)).json.error.message).toContain('could not be reached')
    expect((await post(`https://rebind.test:${trap.port}/v1`)).json.error.message).toContain('reserved address')
    expect(trap.connections()).toBe(0)

    // A redirect is treated as an ordinary reply and is not followed.
    const made = await post(server.url)
    expect(made.status).toBe(201)
    for (const status of [301, 302, 303, 307, 308]) {
      server.misbehave(() => ({ status, body: '', headers: { location: `http://127.0.0.1:${trap.port}/v1/chat/completions` } }))
      expect((await post(server.url)).json.error.message).toContain(`${status}: redirects are not followed`)
      expect((await chat(made.json.endpoint.provider_ref)).json.error.code).toBe('all_routes_failed')
    }
    expect(trap.connections()).toBe(0)
  })

  test('OUTBOUND_ALLOW permits exactly its host on its port, whatever address the host name resolves to', async () => {
    const made = await post(`http://permitted.test:${server.port}/v1`)
    expect(made.status).toBe(201)
    expect((await chat(made.json.endpoint.provider_ref)).status).toBe(200)
    for (const url of [`http://permitted.test:${trap.port}/v1`, `https://permitted.test:${trap.port}/v1`, `http://permitted.test.:${server.port}/v1`])
      expect((await post(url)).json.error.code, url).toBe('bad_request')
    expect(trap.connections()).toBe(0)
  })

  test('when a registered name resolves to a private address, its retest fails and says why', async () => {
    await store([`https://private.test:${trap.port}/v1`])
    const [moved] = (await app.call('GET', '/me/endpoints', undefined, { cookie: owner })).json.endpoints
    const { status, json } = await app.call('POST', `/me/endpoints/${moved.id}/retest`, undefined, { cookie: owner })
    expect([status, json.ok, json.compliance.checks[0].detail]).toEqual([200, false, expect.stringContaining('OUTBOUND_ALLOW')])
    expect(trap.connections()).toBe(0)
  })
})
