import { timingSafeEqual } from 'node:crypto'
import { parseCookie, stringifySetCookie } from 'cookie'
import { z } from 'zod'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { hashKey, type Sealer } from '../../../platform/security/secrets.ts'
import { cleanEmail } from '../../../platform/values/email-address.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { People } from '../../orgs/accounts/people.ts'
import type { SignInGrants } from '../../orgs/joining/sign-in-grants.ts'
import { identityFailure, oauthErrorOf } from '../identity/identity-failure.ts'
import type { Identified, IdentityProvider, IdentityProviders, SignInSecrets } from '../identity/identity-provider.ts'
import type { Arriving, SignInCompletion } from './sign-in-completion.ts'
import { deleteOldStates, insertState, takeState } from './sign-in-queries.ts'

export interface SignInDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly providers: IdentityProviders
  readonly people: Pick<People, 'arrive' | 'recognise' | 'isMember' | 'ensureOrg'>
  readonly grants: Pick<SignInGrants, 'apply'>
  /** Returns the organisation for which a mail domain is claimed for an issuer. Undefined for a provider that is no issuer of the operator's file. */
  claimedFor(provider: string, email: string): { readonly orgId: number | null } | undefined
  readonly signInCompletion: SignInCompletion
  readonly baseUrl: () => string
}

/** The cookie that binds a started sign-in to its browser. */
const browserCookie = 'br_sign_in'
const browserShape = /^[A-Za-z0-9_-]{43}$/
/** How long a person may take at the identity provider. */
const stateTtlSeconds = 600
const secretBytes = 32

const underWayShape = z.object({
  verifier: z.string(),
  nonce: z.string(),
  returnTo: z.string().nullable(),
  /** Hash of the browser's cookie, in base64. */
  browser: z.string(),
})
type UnderWay = z.output<typeof underWayShape>

/** The address to which the browser is sent, and the cookies to set. */
export interface Onward {
  readonly location: string
  readonly cookies: readonly string[]
}

/** A finished sign-in: the session, and the path that the person asked for. */
export interface SignedIn {
  readonly returnTo: string | null
  readonly cookies: readonly string[]
}

const startAgain = 'Begin again at /auth.'

/** Sign-in at an identity provider, from the redirect to the session. */
export class SignIn {
  readonly #deps: SignInDeps
  constructor(deps: SignInDeps) {
    this.#deps = deps
  }

  /** Returns the configured ways to sign in, in a fixed order. */
  methods(): readonly Pick<IdentityProvider, 'name' | 'title' | 'icon'>[] {
    return [...this.#deps.providers.values()].filter(provider => provider !== null)
  }

  /** Starts a sign-in and returns the provider's address. Throws `not_found`, `provider_not_configured`, `unavailable`. */
  async start(name: string, returnTo: string | null, { cookie }: Arriving): Promise<Onward> {
    const provider = this.#provider(name)
    const { db, clock, ids, sealer } = this.#deps
    const state = ids.secret('', secretBytes)
    const secrets: SignInSecrets = { state, verifier: ids.secret('', secretBytes), nonce: ids.secret('', secretBytes) }
    // All sign-ins of a browser share one cookie, so that two tabs do not disturb each other.
    const browser = browserOf(cookie) ?? ids.secret('', secretBytes)
    const location = await provider.authorizationUrl(this.#redirectUri(provider), secrets).catch((cause: unknown) => this.#fail(provider, cause))
    const underWay: UnderWay = { verifier: secrets.verifier, nonce: secrets.nonce, returnTo, browser: hashKey(browser).toString('base64') }
    const hash = hashKey(state)
    await db.exec(insertState, hash, provider.name, sealer.seal(JSON.stringify(underWay), signInOwner(hash)), new Date(clock.nowMs() + stateTtlSeconds * 1000))
    return { location: location.href, cookies: [this.#browserCookie(browser)] }
  }

  /**
   * Finishes a sign-in when the browser comes back, and makes the session. `query` has the parameters that the provider sent. Throws `not_found` and
   * `provider_not_configured`. Throws `unavailable` when the provider does not reply. Throws `bad_request` when the state belongs to another browser,
   * was used or has expired, when the provider refused, and when its reply is invalid.
   */
  async finish(name: string, query: Readonly<Record<string, string>>, arriving: Arriving): Promise<SignedIn> {
    const provider = this.#provider(name)
    const { state } = query
    const underWay = state === undefined ? null : await this.#take(state, provider)
    if (query['error'] !== undefined) throw declined(provider, query['error'])
    if (state === undefined || underWay === null)
      throw fail('bad_request', { message: `This sign-in was not begun here, was used already or took longer than 10 minutes. ${startAgain}` })
    if (!isSameBrowser(underWay, arriving.cookie))
      throw fail('bad_request', { message: `This sign-in was begun in another browser, or this one refuses cookies. ${startAgain}` })
    const identity = await this.#identify(provider, query, { state, verifier: underWay.verifier, nonce: underWay.nonce })
    const userId = await this.#arrive(provider, identity, arriving)
    const proven = identity.isProven === false ? null : cleanEmail(identity.verifiedEmail ?? '')
    const session = await this.#deps.signInCompletion.signIn(userId, 'signIn', arriving, proven)
    return { returnTo: underWay.returnTo, cookies: [session] }
  }

  /** Returns the user of the identity, who is then a member of an organisation. People of a claimed mail domain first join its organisation. */
  async #arrive({ name }: IdentityProvider, identity: Identified, { call }: Arriving): Promise<number> {
    const { people, grants, claimedFor } = this.#deps
    const email = cleanEmail(identity.verifiedEmail ?? '')
    const claim = email === null ? undefined : claimedFor(name, email)
    if (email === null || claim === undefined) return (await people.arrive(identity)).userId
    const { userId } = await people.recognise(identity)
    const origin = { sourceIp: call.clientIp(), requestId: call.requestId }
    const affiliation = { issuer: name, email, orgId: claim.orgId, groups: identity.groups ?? [] }
    await grants.apply(userId, affiliation, origin, () => people.isMember(userId))
    await people.ensureOrg(userId)
    return userId
  }

  /** Deletes sign-ins that were never finished. Returns their number. */
  async sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldStates, new Date(this.#deps.clock.nowMs()))
  }

  #provider(text: string): IdentityProvider {
    const { providers } = this.#deps
    const provider = providers.get(text)
    if (provider === undefined) throw fail('not_found', { message: `There is no way to sign in of that name. There are: ${[...providers.keys()].join(', ')}.` })
    if (provider === null) throw fail('provider_not_configured')
    return provider
  }

  /** Takes the stored sign-in of a state. Returns null when there is no such sign-in, when it has expired, and when it belongs to another provider. */
  async #take(state: string, provider: IdentityProvider): Promise<UnderWay | null> {
    const { db, clock, sealer } = this.#deps
    const hash = hashKey(state)
    const row = await db.maybe(takeState, hash)
    if (row === null || row.provider !== provider.name || row.expiresAt.getTime() <= clock.nowMs()) return null
    return underWayShape.parse(JSON.parse(sealer.open(row.sealed, signInOwner(hash))))
  }

  async #identify(provider: IdentityProvider, query: Readonly<Record<string, string>>, secrets: SignInSecrets): Promise<Identified> {
    if (query['code'] === undefined) throw fail('bad_request', { message: `${provider.title} sent no code. ${startAgain}` })
    const url = new URL(this.#redirectUri(provider))
    for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value)
    return await provider.identify(url, secrets).catch((cause: unknown) => this.#fail(provider, cause))
  }

  /** Logs only the code of the failure, never a token or a reply. Throws the error that the person sees. */
  #fail(provider: IdentityProvider, cause: unknown): never {
    this.#deps.log.warn('sign_in_failed', { provider: provider.name, code: cause instanceof GatewayError ? 'refused_claims' : oauthErrorOf(cause) })
    throw identityFailure(provider, cause)
  }

  #redirectUri(provider: IdentityProvider): string {
    return `${this.#deps.baseUrl()}/auth/${provider.name}/callback`
  }

  #browserCookie(value: string): string {
    const secure = this.#deps.baseUrl().startsWith('https:')
    return stringifySetCookie({ name: browserCookie, value, httpOnly: true, sameSite: 'lax', secure, path: '/auth', maxAge: stateTtlSeconds })
  }
}

/** Returns the name that ties the sealed data of a sign-in to its row. Data that is copied to another row cannot be opened. */
export const signInOwner = (stateHash: Buffer): string => `sign_in_state:${stateHash.toString('hex')}`

function browserOf(cookieHeader: string | undefined): string | null {
  const value = cookieHeader === undefined ? undefined : parseCookie(cookieHeader)[browserCookie]
  return value !== undefined && browserShape.test(value) ? value : null
}

function isSameBrowser({ browser }: UnderWay, cookieHeader: string | undefined): boolean {
  const given = browserOf(cookieHeader)
  return given !== null && timingSafeEqual(hashKey(given), Buffer.from(browser, 'base64'))
}

function declined({ title }: IdentityProvider, error: string): Error {
  if (error === 'access_denied') return fail('bad_request', { message: `The sign-in at ${title} was declined (access_denied). ${startAgain}` })
  const code = /^[a-z_]{1,60}$/.test(error) ? ` (${error})` : ''
  return fail('bad_request', { message: `${title} did not sign you in${code}. ${startAgain}` })
}
