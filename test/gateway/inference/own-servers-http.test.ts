/** An organisation's own server, on every endpoint that can use it. The gateway must not connect to its own network or follow a redirect. */
import type { LookupFunction } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const messages = [{ role: 'user', content: 'hello' }]
/** The endpoints that can use an own server, which serves chat models. */
const rows: readonly [path: string, body: Record<string, unknown>][] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/chat/completions', { messages, stream: true }],
  ['/v1/messages', { messages, max_tokens: 5 }],
  ['/v1/messages', { messages, max_tokens: 5, stream: true }],
  ['/v1/responses', { input: 'hello' }],
  ['/v1/responses', { input: 'hello', stream: true }],
]

const moveInside = statement<[baseUrl: string]>('test.move_inside', `update custom_endpoints set base_url = $1::text where name like 'inner %'`)

describe('servers of an organisation', () => {
  let app: TestApp
  let own: UpstreamServer
  /** The address to which the host names of user-given URLs resolve now. */
  let address = '127.0.0.1'
  const references = new Map<string, string>()
  beforeAll(async () => {
    own = await startUpstream()
    const lookup: LookupFunction = (_host, options, done) =>
      options.all ? done(null, [{ address, family: address.includes(':') ? 6 : 4 }]) : done(null, address, address.includes(':') ? 6 : 4)
    app = await startApp({ lookup, env: { OUTBOUND_ALLOW: new URL(own.url).host, CIRCUIT_FAILURES: '1000' } })
    const cookie = await app.signIn()
    for (const kind of ['inner', 'redirecting']) {
      // Both servers pass their test at registration. Afterwards the name of the first resolves to an internal address.
      const endpoint = { name: `${kind} server`, model: 'test-model', base_url: own.url, upstream_model: 'm', key: 'sk-own-server-key' }
      const made = await app.call('POST', '/me/endpoints', endpoint, { cookie })
      expect(made.status, made.text).toBe(201)
      references.set(kind, made.json.endpoint.provider_ref)
    }
    await app.db.exec(moveInside, 'https://inner.example/v1')
    own.requests.length = 0
  })
  afterAll(async () => {
    await app.stop()
    await own.close()
  })

  const call = ([path, body]: (typeof rows)[number], kind: string, token = app.key) =>
    app.call('POST', path, { model: 'test-model', provider: references.get(kind), ...body }, { token })

  for (const row of rows)
    test(`${row[0]}${row[1]['stream'] === true ? ', streamed' : ''}`, async () => {
      for (const inside of ['127.0.0.1', '10.0.0.5', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fd00::1', '64:ff9b::7f00:1', '0.0.0.0']) {
        address = inside
        const refused = await call(row, 'inner')
        expect([inside, refused.status, refused.text]).toEqual([inside, 502, expect.stringContaining('BLOCKED_ADDRESS')])
      }
      for (const status of [301, 302, 303, 307, 308]) {
        own.script({ status, headers: { location: app.alpha.url, 'set-cookie': 'a=b' }, body: 'elsewhere' })
        const moved = await call(row, 'redirecting')
        expect([moved.status, moved.headers.get('location'), moved.headers.get('set-cookie')]).toEqual([502, null, null])
      }
      // A key of another organisation cannot use the server.
      const other = await app.otherOrg(`Other ${rows.indexOf(row)}`)
      const before = own.requests.length
      expect((await call(row, 'redirecting', other.key)).status).toBe(400)
      expect(own.requests).toHaveLength(before)
      for (const upstream of [app.alpha, app.beta, app.indus]) expect(upstream.requests).toEqual([])
      expect(own.requests.every(({ headers }) => headers.authorization === 'Bearer sk-own-server-key')).toBe(true)
    })
})
