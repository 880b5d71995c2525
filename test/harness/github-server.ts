import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface GithubPerson {
  readonly id: number
  readonly login: string
  readonly name: string | null
  readonly avatar_url: string
  readonly emails: readonly { readonly email: string; readonly primary: boolean; readonly verified: boolean }[]
}

export interface GithubServer {
  readonly url: string
  readonly env: Readonly<Record<string, string>>
  person: GithubPerson
  /** The client secret that it expects from the gateway. */
  clientSecret: string
  /** The status of all API answers. Null means normal answers. */
  apiStatus: number | null
  /** Returns the number of exchanged codes so far. */
  readonly exchanges: () => number
  stop(): Promise<void>
}

interface Grant {
  readonly challenge: string
  readonly redirectUri: string
}

const clientId = 'github-client'

/**
 * A fake of GitHub with the parts that sign-in uses: /login/oauth/authorize and /login/oauth/access_token with one-time codes, PKCE and a client secret,
 * and /user and /user/emails for its tokens. As the real GitHub does, it sends errors with status 200.
 */
export async function startGithub(): Promise<GithubServer> {
  const grants = new Map<string, Grant>()
  const tokens = new Set<string>()
  let exchanged = 0
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const github: GithubServer = {
    url,
    env: { GITHUB_BASE_URL: url, GITHUB_API_URL: `${url}/api`, GITHUB_CLIENT_ID: clientId, GITHUB_CLIENT_SECRET: 'github-client-secret' },
    person: {
      id: 4711,
      login: 'asha',
      name: 'Asha Rao',
      avatar_url: 'https://avatars.example.test/4711',
      emails: [
        { email: 'asha@work.test', primary: false, verified: true },
        { email: 'asha@example.test', primary: true, verified: true },
      ],
    },
    clientSecret: 'github-client-secret',
    apiStatus: null,
    exchanges: () => exchanged,
    stop: () => {
      server.closeAllConnections()
      return new Promise(done => server.close(() => done()))
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = new URL(request.url ?? '/', url)
    if (at.pathname === '/login/oauth/authorize') authorize(at.searchParams, response)
    else if (at.pathname === '/login/oauth/access_token' && request.method === 'POST') await exchange(request, response)
    else api(at, request, response)
  }

  function api(at: URL, request: IncomingMessage, response: ServerResponse): void {
    const isKnown = tokens.has((request.headers.authorization ?? '').replace(/^bearer /i, ''))
    const { emails, ...account } = github.person
    const replies: Record<string, unknown> = {
      '/api/user': { ...account, email: null, type: 'User' },
      '/api/user/emails': emails.map(email => ({ ...email, visibility: null })),
    }
    if (github.apiStatus !== null) json(response, github.apiStatus, { message: 'Server Error' })
    else if (!isKnown) json(response, 401, { message: 'Bad credentials' })
    else if (request.headers['user-agent'] === undefined) json(response, 403, { message: 'Request forbidden by administrative rules. Send a User-Agent.' })
    else json(response, at.pathname in replies ? 200 : 404, replies[at.pathname] ?? { message: 'Not Found' })
  }

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const redirectUri = query.get('redirect_uri') ?? ''
    if (query.get('client_id') !== clientId || query.get('code_challenge_method') !== 'S256') {
      json(response, 404, { message: 'Not Found' })
      return
    }
    const code = randomBytes(10).toString('hex')
    grants.set(code, { challenge: query.get('code_challenge') ?? '', redirectUri })
    const back = new URL(redirectUri)
    back.searchParams.set('code', code)
    back.searchParams.set('state', query.get('state') ?? '')
    response.writeHead(302, { location: back.href }).end()
  }

  async function exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = new URLSearchParams(Buffer.concat(chunks).toString())
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isOurs = form.get('client_id') === clientId && form.get('client_secret') === github.clientSecret
    const isGood = grant !== undefined && grant.challenge === challenge && grant.redirectUri === form.get('redirect_uri')
    if (!isOurs) json(response, 200, { error: 'incorrect_client_credentials', error_description: 'The client_id and/or client_secret passed are incorrect.' })
    else if (!isGood) json(response, 200, { error: 'bad_verification_code', error_description: 'The code passed is incorrect or expired.' })
    else {
      const token = `gho_${randomBytes(18).toString('hex')}`
      tokens.add(token)
      exchanged++
      json(response, 200, { access_token: token, scope: 'read:user,user:email', token_type: 'bearer' })
    }
  }
  return github
}

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(value))
}
