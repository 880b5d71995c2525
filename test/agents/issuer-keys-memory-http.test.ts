import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { startApp } from '../harness/app.ts'
import { exchange } from './oauth-calls.ts'

const sources = 20
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test('the keys of an issuer need little memory, whatever else its reply contains', async () => {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  const more = `[${'[],'.repeat(85_000)}[]]`
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    response.end(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","kid":"1","more":${more}}]}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const app = await startApp({ env: { OUTBOUND_ALLOW: host } })
  const cookie = await app.signIn()
  const agent = await app.newAgent('ci')
  for (let at = 0; at < sources; at++) {
    const rule = {
      name: `r${at}`,
      issuer: `https://issuer-${at}.example`,
      subject: 'me',
      jwks_uri: `http://${host}/${at}`,
      agent_id: agent.id,
      key_id: app.keyId,
    }
    expect((await app.call('POST', '/me/agent-trust', rule, { cookie })).status).toBe(201)
  }
  const ask = (at: number) => {
    const claims = { iss: `https://issuer-${at}.example`, aud: `${app.baseUrl}/orgs/${app.orgId}`, sub: 'me', iat: 1, exp: 9e9 }
    return exchange(app, `${part({ alg: 'ES256', kid: '1' })}.${part(claims)}.AAAA`)
  }
  await ask(0)
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 1; at < sources; at++) expect((await ask(at)).status).toBe(400)
  collect()
  // With all members of the keys, each issuer needs 3.4 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(sources * 500_000)
  expect(asked).toBe(sources)
  await app.stop()
  server.close()
})
