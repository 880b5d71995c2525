import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { type StrictIssuer, startStrictIssuer } from '../../../harness/strict-issuer.ts'
import { type GuardedServer, startGuardedServer } from './guarded-server.ts'

const home = 'https://brigade.example.com'
const document = `${home}/oauth/tool-client`

/** Returns a port that was free just now. */
async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise(resolve => probe.close(resolve))
  return port
}

describe('a server without a client id', () => {
  let app: TestApp
  let issuer: StrictIssuer
  let server: GuardedServer
  let owner: string
  let address: string

  beforeAll(async () => {
    issuer = await startStrictIssuer()
    server = await startGuardedServer(issuer)
    const port = await freePort()
    app = await startApp({ env: { BASE_URL: home, PORT: String(port), OUTBOUND_ALLOW: [issuer.hostPort, server.hostPort].join(',') } })
    address = `http://127.0.0.1:${port}`
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
    await issuer.close()
  })

  const call = async (method: string, path: string, body?: object) => {
    const headers = { cookie: owner, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const response = await fetch(address + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    const text = await response.text()
    return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : null }
  }
  const register = (auth: object = { kind: 'oauth_user' }) => call('POST', '/me/tool-servers', { name: 'Crm', slug: 'crm', url: server.url, auth })

  test('the gateway is a public client whose id is the address of its own document, at issuers that take such documents', async () => {
    const shown = await call('GET', '/oauth/tool-client')
    expect([shown.status, shown.json]).toEqual([
      200,
      {
        client_id: document,
        client_name: 'Brigade',
        client_uri: home,
        redirect_uris: [`${home}/me/tool-connections/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
    ])
    const refused = await register()
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('takes no client-id metadata documents')])
    expect((await register({ kind: 'oauth_user', client_secret: 'a-secret' })).status).toBe(400)
    // Without "iss", another issuer could collect the codes of a client without a secret.
    const silent = { client_id_metadata_document_supported: true, authorization_response_iss_parameter_supported: undefined }
    issuer.metadata = of => ({ ...of, ...silent })
    const unnamed = await register()
    expect([unnamed.status, unnamed.json.error.message]).toEqual([400, expect.stringContaining('"iss"')])
    issuer.metadata = of => ({ ...of, client_id_metadata_document_supported: true })
    issuer.publicClients.add(document)
    const made = await register()
    expect([made.status, made.json.server.auth]).toMatchObject([201, { client_id: document, client_secret_mask: null, issuer: issuer.url }])
    const begun = await call('POST', `/me/tool-servers/${made.json.server.id}/connect`)
    issuer.metadata = of => ({ ...of, ...silent })
    issuer.comeBack = query => query.delete('iss')
    const mixed = await issuer.consent(begun.json.authorization_url)
    const sent = issuer.requests.length
    expect((await call('GET', `${mixed.pathname}${mixed.search}`)).status).toBeGreaterThanOrEqual(400)
    expect(issuer.requests.length).toBe(sent)
    issuer.metadata = of => ({ ...of, client_id_metadata_document_supported: true })
    issuer.comeBack = () => undefined
    const again = await call('POST', `/me/tool-servers/${made.json.server.id}/connect`)
    const back = await issuer.consent(again.json.authorization_url)
    expect(back.origin).toBe(home)
    expect((await call('GET', `${back.pathname}${back.search}`)).status).toBe(200)
    expect(issuer.requests.at(-1)).toMatchObject({ form: { client_id: document, grant_type: 'authorization_code' }, answered: 200 })
  })
})
