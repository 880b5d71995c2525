/**
 * An OpenID Connect issuer on loopback that forgives nothing. It demands PKCE with S256, a nonce, HTTP Basic and the exact redirect address, and gives each
 * code once. Its id tokens have only `sub`: everything else is at its userinfo endpoint, as the specification allows.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export interface OpenidIssuer {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  /** Paths of the requests so far. */
  readonly seen: string[]
  /** The claims of the person who is signed in here. */
  person: { readonly sub: string } & Readonly<Record<string, unknown>>
  /** Changes the claims of an id token. */
  tamper: (claims: Record<string, unknown>) => void
  /** Changes the metadata. */
  metadata: (document: Record<string, unknown>) => Record<string, unknown>
  /** Changes the query with which a person comes back. */
  comeBack: (query: URLSearchParams) => void
  /** Signs with another key from now on, and publishes only this key. */
  rotate(): Promise<void>
  close(): Promise<void>
  /** Listens again on the same port. */
  listen(): Promise<void>
}

type SigningKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey']

interface Begun {
  readonly challenge: string
  readonly redirectUri: string
  readonly nonce: string
  readonly person: OpenidIssuer['person']
}

/** Starts the issuer. It knows one client, which may come back to any address that ends in `/auth/<name>/callback`. */
export async function startOpenidIssuer(path: string, name: string): Promise<OpenidIssuer> {
  const codes = new Map<string, Begun>()
  const tokens = new Map<string, OpenidIssuer['person']>()
  let key: { readonly kid: string; readonly privateKey: SigningKey; readonly jwk: JWK }
  let port = 0
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const listen = async (): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  await listen()
  const url = `http://127.0.0.1:${port}${path}`
  const issuer: OpenidIssuer = {
    url,
    clientId: 'brigade at acme',
    clientSecret: `secret:${randomBytes(12).toString('hex')}%`,
    seen: [],
    person: { sub: 'nobody' },
    tamper: () => undefined,
    metadata: document => document,
    comeBack: () => undefined,
    async rotate() {
      const { privateKey, publicKey } = await generateKeyPair('ES256')
      const kid = randomBytes(4).toString('hex')
      key = { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } }
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
    listen,
  }
  await issuer.rotate()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const at = new URL(request.url ?? '/', url)
    issuer.seen.push(at.pathname)
    if (at.pathname === `${path}/.well-known/openid-configuration`) return json(response, 200, issuer.metadata(document()))
    if (at.pathname === `${path}/keys`) return json(response, 200, { keys: [key.jwk] })
    if (at.pathname === `${path}/authorize`) return authorize(at.searchParams, response)
    if (at.pathname === `${path}/token` && request.method === 'POST') return token(request, response)
    if (at.pathname === `${path}/userinfo`) {
      const person = tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''))
      return person === undefined ? json(response, 401, { error: 'invalid_token' }) : json(response, 200, person)
    }
    return json(response, 404, { error: 'not_found' })
  }

  const document = (): Record<string, unknown> => ({
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    userinfo_endpoint: `${url}/userinfo`,
    jwks_uri: `${url}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    authorization_response_iss_parameter_supported: true,
  })

  function authorize(query: URLSearchParams, response: ServerResponse): unknown {
    const get = (field: string): string => query.get(field) ?? ''
    const faults = [
      get('response_type') === 'code' ? '' : 'response_type',
      get('client_id') === issuer.clientId ? '' : 'client_id',
      /^[A-Za-z0-9_-]{43}$/.test(get('code_challenge')) && get('code_challenge_method') === 'S256' ? '' : 'PKCE',
      get('nonce').length >= 22 && get('state').length >= 22 ? '' : 'nonce or state',
      get('scope').split(' ').includes('openid') ? '' : 'scope',
      get('redirect_uri').endsWith(`/auth/${name}/callback`) ? '' : 'redirect_uri',
    ].filter(fault => fault !== '')
    if (faults.length > 0) return json(response, 400, { error: `wrong: ${faults.join(', ')}` })
    const code = randomBytes(24).toString('base64url')
    codes.set(code, { challenge: get('code_challenge'), redirectUri: get('redirect_uri'), nonce: get('nonce'), person: issuer.person })
    const back = new URL(get('redirect_uri'))
    for (const [field, value] of Object.entries({ code, state: get('state'), iss: url })) back.searchParams.set(field, value)
    issuer.comeBack(back.searchParams)
    return response.writeHead(302, { location: back.href }).end()
  }

  async function token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = new URLSearchParams(Buffer.concat(chunks).toString())
    const [id, secret] = Buffer.from((request.headers.authorization ?? '').replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':')
      .map(part => decodeURIComponent(part.replaceAll('+', ' ')))
    if (id !== issuer.clientId || secret !== issuer.clientSecret || form.has('client_secret')) return json(response, 401, { error: 'invalid_client' })
    const begun = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (begun === undefined || begun.challenge !== challenge || begun.redirectUri !== form.get('redirect_uri'))
      return json(response, 400, { error: 'invalid_grant' })
    const access = randomBytes(24).toString('base64url')
    tokens.set(access, begun.person)
    const nowSeconds = Math.floor(Date.now() / 1000)
    const claims: Record<string, unknown> = { iss: url, aud: id, sub: begun.person.sub, nonce: begun.nonce, iat: nowSeconds, exp: nowSeconds + 60 }
    issuer.tamper(claims)
    const idToken = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: key.kid }).sign(key.privateKey)
    return json(response, 200, { access_token: access, token_type: 'Bearer', id_token: idToken })
  }

  return issuer
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body))
}
