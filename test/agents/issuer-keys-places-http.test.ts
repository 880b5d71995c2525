/** The places for cached keys of other issuers, which the organisations of one founder share. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp } from '../harness/app.ts'
import { exchange, refusal } from './oauth-calls.ts'

/** More sources than the cache has places. Eleven organisations with a hundred rules each have as many. */
const sources = 1_100
const found = statement<[orgId: number, userId: number]>('test.places_found', 'update orgs set created_by = $2::int where id = $1::int')
const claim = statement<[orgId: number, audience: string, from: number, to: number]>(
  'test.places_claim',
  `insert into agent_trust_audiences (issuer, audience, org_id)
   select 'https://issuer-' || n || '.example', $2::text, $1::int from generate_series($3::int, $4::int) n`,
)
const trust = statement<[orgId: number, audience: string, from: number, to: number, host: string, agentId: number, keyId: number]>(
  'test.places_trust',
  `insert into agent_trust (org_id, name, issuer, audience, subject, jwks_uri, agent_id, key_id, scopes, created_at)
   select $1::int, 'rule ' || n, 'https://issuer-' || n || '.example', $2::text, 'me', 'http://' || $5::text || '/' || n, $6::int, $7::int, '{inference}', now()
   from generate_series($3::int, $4::int) n`,
)
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test('organisations of one founder that use more issuers than there are places do not push the keys of others out of the cache', {
  timeout: 120_000,
}, async () => {
  const asked = new Map<string, number>()
  const server = createServer((request, response) => {
    asked.set(request.url ?? '', (asked.get(request.url ?? '') ?? 0) + 1)
    response.end('{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","kid":"1"}]}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const app = await startApp({ env: { OUTBOUND_ALLOW: host, ANON_RPM: '1000000' } })
  try {
    const audience = 'places'
    const second = await app.otherOrg('Second of the same founder')
    await app.db.exec(found, second.orgId, app.userId)
    const neighbour = await app.otherOrg('Neighbour')
    for (const [org, from, to] of [
      [neighbour, 0, 0],
      [app, 1, sources / 2],
      [second, sources / 2 + 1, sources],
    ] as const) {
      const made = await app.call('POST', '/v1/me/agents', { name: 'ci' }, { token: org.key })
      await app.db.exec(claim, org.orgId, audience, from, to)
      await app.db.exec(trust, org.orgId, audience, from, to, host, made.json.id, org.keyId)
    }
    const use = async (at: number): Promise<void> => {
      const claims = { iss: `https://issuer-${at}.example`, aud: audience, sub: 'me', iat: 1, exp: 9e9 }
      const reply = await exchange(app, `${part({ alg: 'ES256', kid: '1' })}.${part(claims)}.AAAA`)
      expect(refusal(reply), reply.text).toBe('400 invalid_request')
    }
    await use(0)
    for (let from = 1; from <= sources; from += 20) await Promise.all(Array.from({ length: 20 }, (_, at) => use(from + at)))
    await use(0)
    expect(asked.get('/0')).toBe(1)
    await use(sources)
    expect(asked.get(`/${sources}`)).toBe(1)
    // The founder has lost its own first sources.
    await use(1)
    expect(asked.get('/1')).toBe(2)
  } finally {
    await app.stop()
    server.close()
  }
})
