import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'

type SigningKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey']

/** An issuer on loopback. A test can change each of its answers. */
export interface OidcIssuer {
  readonly url: string
  /** `127.0.0.1:port`, for OUTBOUND_ALLOW. */
  readonly hostPort: string
  /** Paths of the requests so far. */
  readonly seen: string[]
  /** The published keys. */
  jwks: JWK[]
  /** Answers a request in place of the issuer. When it returns false, the issuer answers as usual. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | null
  /** Creates a key pair. It is published under that id unless `hidden` is true. */
  addKey(kid: string, options?: { alg?: string; hidden?: boolean }): Promise<SigningKey>
  /**
   * Returns a token with the usual claims. `claims` changes them, and undefined leaves a claim out. The key of `header.kid` signs it, or the first
   * key by default.
   */
  token(claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>
  publicKey(kid: string): JWK
  /** Stops listening. `listen` starts again on the same port. */
  close(): Promise<void>
  listen(): Promise<void>
}

export async function startOidcIssuer(path = ''): Promise<OidcIssuer> {
  const keys = new Map<string, { readonly alg: string; readonly key: SigningKey; readonly jwk: JWK }>()
  let port = 0
  const server = createServer((request, response) => {
    issuer.seen.push(request.url ?? '')
    if (issuer.answer?.(request, response)) return
    const json = (value: unknown) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (request.url === `${path}/.well-known/openid-configuration`) return json({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` })
    if (request.url === `${path}/keys`) return json({ keys: issuer.jwks })
    response.writeHead(404).end()
  })
  const listen = async (): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  await listen()
  const issuer: OidcIssuer = {
    url: `http://127.0.0.1:${port}${path}`,
    hostPort: `127.0.0.1:${port}`,
    seen: [],
    jwks: [],
    answer: null,
    async addKey(kid, { alg = 'RS256', hidden = false } = {}) {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
      const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
      keys.set(kid, { alg, key: privateKey, jwk })
      if (!hidden) issuer.jwks.push(jwk)
      return privateKey
    },
    async token(claims = {}, header = {}) {
      const [first = ''] = keys.keys()
      const kid = typeof header['kid'] === 'string' ? header['kid'] : first
      const found = keys.get(kid) ?? keys.get(first)
      if (found === undefined) throw new Error('the issuer has no key')
      const now = Math.floor(Date.now() / 1000)
      const payload = { iss: issuer.url, sub: 'repo:acme/app:ref:refs/heads/main', iat: now, nbf: now, exp: now + 300, jti: `${now}`, ...claims }
      const present = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined)) as JWTPayload
      return new SignJWT(present).setProtectedHeader({ alg: found.alg, kid, typ: 'JWT', ...header }).sign(found.key)
    },
    publicKey(kid) {
      const found = keys.get(kid)
      if (found === undefined) throw new Error(`no key ${kid}`)
      return found.jwk
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
    listen,
  }
  return issuer
}
