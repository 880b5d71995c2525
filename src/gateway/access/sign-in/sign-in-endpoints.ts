import { z } from 'zod'
import { endpointOf, type Reply, reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { type CliLogin, cliKeyDays, cliLoginPath, type Waiting } from '../cli-login.ts'
import { checkOwnPage, type OwnPages, properAddress } from '../pages/own-pages.ts'
import { type HomePage, homePath, returnToSchema } from '../pages/own-path.ts'
import { privateHeaders } from '../pages/page-frame.ts'
import { forBrowser, handOverPage, linkPage, methodsPage } from '../pages/pages.ts'
import type { Sessions } from '../sessions.ts'
import type { SignIn } from './sign-in.ts'
import type { SignInCompletion } from './sign-in-completion.ts'
import type { SignInLinks } from './sign-in-links.ts'

const row = endpointOf<{
  signIn: SignIn
  signInLinks: SignInLinks
  signInCompletion: SignInCompletion
  cliLogin: CliLogin
  sessions: Sessions
  ownPages: OwnPages & HomePage
}>()

const tag = 'sign-in'
const page = { media: 'text/html' } as const
const browser = z.object({ accept: z.string().optional(), cookie: z.string().optional(), host: z.string().optional(), 'user-agent': z.string().optional() })
const browserOnOurPage = browser.extend({ origin: z.string().optional(), 'sec-fetch-site': z.string().optional() })
const providerPath = z.object({ provider: z.string().describe('google, github, or the id of an issuer of the operator') })
const tokenShape = /^[A-Za-z0-9_-]{20,100}$/
const linkToken = z.string().regex(tokenShape, 'is not a whole sign-in link')
const portMin = 1024
const portMax = 65_535
const smallBodyMaxBytes = 4096
const verifierShape = /^[A-Za-z0-9._~-]{43,128}$/

/**
 * The port where the command line waits, its state, and its challenge. The challenge is the SHA-256 of a verifier that only the command line knows.
 * So the values that pass through the browser are useless to anybody else.
 */
const waitingQuery = z.object({
  port: z
    .string()
    .regex(/^[1-9]\d{3,4}$/, 'must be a whole number from 1024 to 65535')
    .transform(Number)
    .refine(port => port >= portMin && port <= portMax, 'must be a whole number from 1024 to 65535')
    .describe('Port on 127.0.0.1.'),
  state: z
    .string()
    .regex(/^[A-Za-z0-9._~-]{8,200}$/, 'must be 8 to 200 characters: letters, digits and . _ ~ -')
    .describe('Comes back with the code.'),
  code_challenge: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, 'must be the SHA-256 of a code_verifier in base64url: this needs the brigade command of this version')
    .describe('SHA-256 of the verifier, base64url.'),
  code_challenge_method: z.literal('S256').optional(),
})

const onward = ({ location, cookies }: { location: string; cookies: readonly string[] }): Reply =>
  reply.withCookies(reply.redirect(location, privateHeaders), cookies)

export const signInEndpoints = {
  authMethods: row({
    at: 'GET /auth',
    auth: 'public',
    access: {},
    tag,
    summary: 'Page with the ways to sign in.',
    input: { query: z.object({ return_to: returnToSchema }) },
    output: page,
    errors: [],
    handle: ({ signIn }, { query }) => methodsPage(signIn.methods(), query.return_to),
  }),

  authStart: row({
    at: 'GET /auth/{provider}',
    auth: 'public',
    hasEffect: true,
    access: {},
    tag,
    summary: 'Sends the browser to the identity provider.',
    input: { path: providerPath, query: z.object({ return_to: returnToSchema }), headers: browser },
    output: page,
    status: 302,
    errors: ['not_found', 'provider_not_configured', 'unavailable', 'database_unavailable'],
    handle: ({ signIn, ownPages }, { path: { provider }, query, headers: { accept, cookie, host } }, call) =>
      forBrowser(accept, async () => {
        const proper = properAddress(host, withReturnTo(`/auth/${encodeURIComponent(provider)}`, query.return_to), ownPages)
        if (proper !== null) return reply.redirect(proper, privateHeaders)
        return onward(await signIn.start(provider, query.return_to ?? null, { cookie, call }))
      }),
  }),

  authCallback: row({
    at: 'GET /auth/{provider}/callback',
    auth: 'public',
    hasEffect: true,
    access: {},
    tag,
    summary: 'The browser comes back from the identity provider: sets br_session and goes on to return_to.',
    input: { path: providerPath, query: z.record(z.string(), z.string()), headers: browser },
    output: page,
    status: 302,
    errors: ['not_found', 'provider_not_configured', 'unavailable', 'forbidden', 'member_cap', 'database_unavailable'],
    handle: ({ signIn, ownPages }, { path, query, headers: { accept, cookie, 'user-agent': userAgent } }, call) =>
      forBrowser(accept, async () => {
        const { returnTo, cookies } = await signIn.finish(path.provider, query, { cookie, userAgent, call })
        return onward({ location: returnTo ?? homePath(accept, ownPages.hasConsole), cookies })
      }),
  }),

  signOut: row({
    at: 'POST /auth/logout',
    auth: 'session',
    access: {},
    tag,
    summary: 'Ends the session and clears its cookie.',
    input: {},
    output: z.object({ ok: z.literal(true), signed_out: z.literal(true) }),
    errors: ['foreign_origin', 'database_unavailable'],
    async handle({ sessions }, _input, { principal }) {
      if (principal.kind !== 'session') throw fail('no_session')
      await sessions.revoke(principal.sessionId)
      return reply.withCookies(reply.json({ ok: true, signed_out: true }, 200, privateHeaders), [sessions.clearingCookie()])
    },
  }),

  signInLinkPage: row({
    at: 'GET /auth/link',
    auth: 'public',
    access: {},
    tag,
    summary: 'Page that asks before a one-time sign-in link is used.',
    input: { query: z.object({ token: linkToken }), headers: browser },
    output: page,
    errors: ['database_unavailable'],
    handle: ({ signInLinks }, { query: { token }, headers: { accept } }) =>
      forBrowser(accept, async () => linkPage(token, (await signInLinks.look(token)).email)),
  }),

  signInByLink: row({
    at: 'POST /auth/link',
    auth: 'public',
    access: {},
    tag,
    summary: 'Uses a one-time sign-in link: sets br_session. The body is a form with the field token.',
    input: { bodyKind: 'raw', body: z.object({ token: z.string() }), bodyLimitBytes: smallBodyMaxBytes, headers: browserOnOurPage },
    output: page,
    status: 302,
    errors: ['foreign_origin', 'forbidden', 'database_unavailable'],
    handle: ({ signInLinks, ownPages }, { body, headers }, call) =>
      forBrowser(headers.accept, async () => {
        checkOwnPage(headers, ownPages)
        const token = new URLSearchParams(body.toString('utf8')).get('token') ?? ''
        if (!tokenShape.test(token)) throw fail('bad_request', { message: 'The form needs the field token: the text after token= in the link.' })
        const location = homePath(headers.accept, ownPages.hasConsole)
        return onward({ location, cookies: [await signInLinks.use(token, { cookie: headers.cookie, userAgent: headers['user-agent'], call })] })
      }),
  }),

  cliLogin: row({
    at: 'GET /cli/login',
    auth: 'public',
    access: {},
    tag,
    summary: 'Page that asks whether the command line on this computer may have a key. A person who is not signed in signs in first.',
    input: { query: waitingQuery, headers: browser },
    output: page,
    errors: ['database_unavailable'],
    async handle({ signIn, signInCompletion }, { query, headers }) {
      const waiting = waitingOf(query)
      const principal = await signInCompletion.currentSession(headers.cookie)
      if (principal === null) return reply.redirect(signInPath(signIn, cliLoginPath(waiting)), privateHeaders)
      return handOverPage(principal.email, { ...waiting, keyDays: cliKeyDays })
    },
  }),

  cliGrant: row({
    at: 'POST /cli/login',
    auth: 'public',
    access: {},
    tag,
    summary: 'The button of that page: sends the browser to the command line with a one-time code, which lives for a minute.',
    input: {
      bodyKind: 'raw',
      body: z.object({ port: z.string(), state: z.string(), code_challenge: z.string() }),
      bodyLimitBytes: smallBodyMaxBytes,
      headers: browserOnOurPage,
    },
    output: page,
    status: 302,
    errors: ['foreign_origin', 'bad_request', 'database_unavailable'],
    handle: ({ signIn, signInCompletion, cliLogin, ownPages }, { body, headers }) =>
      forBrowser(headers.accept, async () => {
        checkOwnPage(headers, ownPages)
        const given = waitingQuery.safeParse(Object.fromEntries(new URLSearchParams(body.toString('utf8'))))
        if (!given.success) throw fail('bad_request', { message: 'The form is not whole. Run brigade login again and open the address that it prints.' })
        const waiting = waitingOf(given.data)
        const principal = await signInCompletion.currentSession(headers.cookie)
        if (principal === null) return reply.redirect(signInPath(signIn, cliLoginPath(waiting)), privateHeaders)
        return reply.redirect(await cliLogin.grant(principal, waiting), privateHeaders)
      }),
  }),

  cliToken: row({
    at: 'POST /cli/token',
    auth: 'public',
    access: {},
    tag,
    summary: 'Takes the one-time code and its verifier (RFC 7636, S256), once, and answers with the API key of the person who pressed the button.',
    input: {
      body: z.strictObject({
        code: z.string().min(20).max(200),
        code_verifier: z.string().regex(verifierShape, 'must be 43 to 128 characters: letters, digits and . _ ~ -'),
      }),
      bodyLimitBytes: smallBodyMaxBytes,
    },
    output: z.object({
      key: z.string().describe('The whole key. It is shown once.'),
      id: z.int(),
      name: z.string(),
      expires_at: z.string().describe('ISO 8601, UTC.'),
    }),
    status: 201,
    errors: ['bad_request', 'database_unavailable', 'duplicate_key_name', 'not_found'],
    async handle({ cliLogin }, { body }, call) {
      const { id, key, name, expiresAt } = await cliLogin.redeem(body.code, body.code_verifier, call)
      return reply.json({ key, id, name, expires_at: expiresAt?.toISOString() ?? '' }, 201, privateHeaders)
    },
  }),
}

const waitingOf = ({ port, state, code_challenge: challenge }: z.output<typeof waitingQuery>): Waiting => ({ port, state, challenge })

/** Returns the path of the sign-in method when exactly one is configured. Otherwise returns the path of the page that lists the methods. */
function signInPath(signIn: SignIn, returnTo: string): string {
  const [only, ...others] = signIn.methods()
  const path = only !== undefined && others.length === 0 ? `/auth/${only.name}` : '/auth'
  return withReturnTo(path, returnTo)
}

function withReturnTo(path: string, returnTo: string | undefined): string {
  return returnTo === undefined ? path : `${path}?${new URLSearchParams({ return_to: returnTo })}`
}
