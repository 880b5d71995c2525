/**
 * An OAuth issuer on loopback that forgives nothing: it demands PKCE with S256, the exact redirect address and the right `resource`, gives each code and each
 * refresh token once, and ends the whole consent when a refresh token comes a second time.
 */
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request to the token or the revocation endpoint. */
export interface IssuerRequest {
  readonly path: string
  readonly form: Readonly<Record<string, string>>
  readonly answered: number
}

interface Consent {
  readonly sub: string
  readonly resource: string
  readonly scope: string
  /** The only refresh token that works. Null: there is none, or the consent has ended. */
  refresh: string | null
  isEnded: boolean
}

export interface StrictIssuer {
  readonly url: string
  readonly hostPort: string
  readonly clientId: string
  readonly clientSecret: string
  /** Ids of clients without a secret. */
  readonly publicClients: Set<string>
  /** The resources for which it gives tokens. */
  readonly resources: Set<string>
  /** Requests to the token and revocation endpoints, oldest first. */
  readonly requests: IssuerRequest[]
  /** Every secret that it has seen or made: they must never be visible anywhere else. */
  readonly secrets: Set<string>
  /** The person who is signed in here. */
  sub: string
  /** Life of access tokens in seconds. Null: it names none. */
  life: number | null
  /** Changes the metadata before they are sent. */
  metadata: (document: Record<string, unknown>) => Record<string, unknown>
  /** Changes the query with which a person comes back. */
  comeBack: (query: URLSearchParams) => void
  /** Is awaited after tokens were made and before they are sent. */
  afterIssue: () => Promise<void>
  /** The status of every answer of the token endpoint. Null: proper answers. */
  refusal: { readonly status: number; readonly error: string } | null
  /** Returns whom an access token is for, when it works for a resource. */
  holderOf(accessToken: string, resource: string): string | null
  /** Ends the access tokens of everybody, or of one person. The refresh tokens stay. */
  forgetAccess(sub?: string): void
  /** The person consents at an address of the authorization endpoint. Returns the address to which the person is sent back. */
  consent(authorizationUrl: string): Promise<URL>
  /** Numbers of consents that have ended, because of a revocation or of a refresh token that came twice. */
  readonly ended: { revoked: number; reused: number }
  close(): Promise<void>
}

/** Starts the issuer. It knows one confidential client. */
export async function startStrictIssuer(path = ''): Promise<StrictIssuer> {
  const codes = new Map<string, { challenge: string; redirectUri: string; resource: string; scope: string; sub: string }>()
  const access = new Map<string, { consent: Consent; endsAtMs: number }>()
  const refreshes = new Map<string, Consent>()
  const secret = (prefix: string): string => {
    const made = `${prefix}-${randomBytes(24).toString('base64url')}`
    issuer.secrets.add(made)
    return made
  }
  const http = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const hostPort = `127.0.0.1:${(http.address() as AddressInfo).port}`
  const url = `http://${hostPort}${path}`
  const issuer: StrictIssuer = {
    url,
    hostPort,
    clientId: 'brigade-client',
    clientSecret: `secret-of-client-${randomBytes(12).toString('hex')}`,
    publicClients: new Set(),
    resources: new Set(),
    requests: [],
    secrets: new Set(),
    sub: 'asha',
    life: 3600,
    metadata: document => document,
    comeBack: () => undefined,
    afterIssue: async () => undefined,
    refusal: null,
    ended: { revoked: 0, reused: 0 },
    holderOf(token, resource) {
      const found = access.get(token)
      if (found === undefined || found.consent.isEnded || found.endsAtMs < Date.now() || found.consent.resource !== resource) return null
      return found.consent.sub
    },
    forgetAccess(sub) {
      for (const [token, { consent }] of access) if (sub === undefined || consent.sub === sub) access.delete(token)
    },
    async consent(authorizationUrl) {
      const answer = await fetch(authorizationUrl, { redirect: 'manual' })
      const location = answer.headers.get('location')
      if (location === null) throw new Error(`the issuer answered ${answer.status}: ${await answer.text()}`)
      return new URL(location)
    },
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
    },
  }
  issuer.secrets.add(issuer.clientSecret)

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const at = new URL(request.url ?? '/', url)
    const wellKnown = `/.well-known/oauth-authorization-server${path}`
    if (request.method === 'GET' && at.pathname === wellKnown) return json(response, 200, issuer.metadata(document()))
    if (request.method === 'GET' && at.pathname === `${path}/authorize`) return authorize(at.searchParams, response)
    if (at.pathname === `${path}/moved`) return response.writeHead(307, { location: `${url}/token` }).end()
    if (request.method !== 'POST') return json(response, 404, { error: 'not_found' })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
    if (at.pathname === `${path}/token`) {
      const { status, body } = token(request, form)
      issuer.requests.push({ path: '/token', form, answered: status })
      if (status === 200) await issuer.afterIssue()
      return json(response, status, body)
    }
    if (at.pathname === `${path}/revoke`) {
      const isClient = isKnown(request, form)
      if (isClient) revoke(form['token'] ?? '')
      issuer.requests.push({ path: '/revoke', form, answered: isClient ? 200 : 401 })
      return isClient ? response.writeHead(200).end() : json(response, 401, { error: 'invalid_client' })
    }
    return json(response, 404, { error: 'not_found' })
  }

  const document = (): Record<string, unknown> => ({
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    revocation_endpoint: `${url}/revoke`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
    authorization_response_iss_parameter_supported: true,
    scopes_supported: ['tools', 'offline_access'],
  })

  function authorize(query: URLSearchParams, response: ServerResponse): unknown {
    const get = (name: string): string => query.get(name) ?? ''
    const faults = [
      get('response_type') === 'code' ? '' : 'response_type',
      get('client_id') === issuer.clientId || issuer.publicClients.has(get('client_id')) ? '' : 'client_id',
      /^[A-Za-z0-9_-]{43}$/.test(get('code_challenge')) && get('code_challenge_method') === 'S256' ? '' : 'PKCE',
      get('state').length >= 22 ? '' : 'state',
      issuer.resources.has(get('resource')) ? '' : 'resource',
      get('redirect_uri').endsWith('/me/tool-connections/callback') ? '' : 'redirect_uri',
    ].filter(fault => fault !== '')
    if (faults.length > 0) return json(response, 400, { error: `wrong: ${faults.join(', ')}` })
    const code = secret('code')
    codes.set(code, { challenge: get('code_challenge'), redirectUri: get('redirect_uri'), resource: get('resource'), scope: get('scope'), sub: issuer.sub })
    const back = new URL(get('redirect_uri'))
    for (const [name, value] of [
      ['code', code],
      ['state', get('state')],
      ['iss', url],
    ] as const)
      back.searchParams.set(name, value)
    issuer.comeBack(back.searchParams)
    return response.writeHead(302, { location: back.href }).end()
  }

  function isKnown(request: IncomingMessage, form: Readonly<Record<string, string>>): boolean {
    if (request.headers.authorization === undefined && issuer.publicClients.has(form['client_id'] ?? '')) return form['client_secret'] === undefined
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    const [id, given] = Buffer.from(basic ?? '', 'base64')
      .toString()
      .split(':')
      .map(decodeURIComponent)
    return form['client_secret'] === undefined && id === issuer.clientId && given === issuer.clientSecret
  }

  function token(request: IncomingMessage, form: Readonly<Record<string, string>>): { status: number; body: object } {
    const refuse = (error: string, status = 400) => ({ status, body: { error, error_description: `why: ${error}` } })
    if (issuer.refusal !== null) return refuse(issuer.refusal.error, issuer.refusal.status)
    if (!isKnown(request, form)) return refuse('invalid_client', 401)
    if (!issuer.resources.has(form['resource'] ?? '')) return refuse('invalid_target')
    const resource = form['resource'] ?? ''
    switch (form['grant_type']) {
      case 'client_credentials':
        return issue({ sub: 'organisation', resource, scope: form['scope'] ?? '', refresh: null, isEnded: false }, false)
      case 'authorization_code': {
        const found = codes.get(form['code'] ?? '')
        codes.delete(form['code'] ?? '')
        const challenge = createHash('sha256')
          .update(form['code_verifier'] ?? '')
          .digest('base64url')
        if (found === undefined || found.challenge !== challenge || found.redirectUri !== form['redirect_uri'] || found.resource !== resource)
          return refuse('invalid_grant')
        return issue({ sub: found.sub, resource, scope: found.scope, refresh: null, isEnded: false }, true)
      }
      case 'refresh_token': {
        const given = form['refresh_token'] ?? ''
        const consent = refreshes.get(given)
        if (consent === undefined || consent.isEnded || consent.resource !== resource) return refuse('invalid_grant')
        if (consent.refresh !== given) {
          consent.isEnded = true
          issuer.ended.reused++
          return refuse('invalid_grant')
        }
        return issue(consent, true)
      }
      default:
        return refuse('unsupported_grant_type')
    }
  }

  function issue(consent: Consent, isRefreshable: boolean): { status: number; body: object } {
    const accessToken = secret('access')
    access.set(accessToken, { consent, endsAtMs: Date.now() + (issuer.life ?? 3600) * 1000 })
    if (isRefreshable) {
      consent.refresh = secret('refresh')
      refreshes.set(consent.refresh, consent)
    }
    return {
      status: 200,
      body: {
        access_token: accessToken,
        token_type: 'Bearer',
        ...(issuer.life === null ? {} : { expires_in: issuer.life }),
        ...(consent.refresh === null ? {} : { refresh_token: consent.refresh }),
        ...(consent.scope === '' ? {} : { scope: consent.scope }),
      },
    }
  }

  function revoke(given: string): void {
    const consent = refreshes.get(given) ?? access.get(given)?.consent
    if (consent === undefined || consent.isEnded) return
    consent.isEnded = true
    issuer.ended.revoked++
  }

  return issuer
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body))
}
