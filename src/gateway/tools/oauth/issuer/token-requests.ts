import * as openid from 'openid-client'
import type { Clock } from '../../../../platform/clock.ts'
import type { CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../../platform/outbound/outbound.ts'
import { guardedOAuthFetch } from './guarded-exchange.ts'
import type { FoundIssuer } from './issuer-metadata.ts'
import { failureIn, OAuthFailure } from './oauth-failure.ts'

/** The client that Brigade is at an issuer. */
export interface OAuthClient {
  readonly clientId: string
  /** Null: a public client. */
  readonly clientSecret: string | null
  /** With spaces between them. Empty: those that the resource names. */
  readonly scopes: string
}

/** The tokens of one answer of an issuer. */
export interface IssuedToken {
  readonly access: string
  /** Null: the issuer sent none. */
  readonly refresh: string | null
  /** When a new token is asked for, before the end. Null: the issuer names no end. */
  readonly renewAt: Date | null
  readonly expiresAt: Date | null
  readonly scopes: string
}

export interface TokenRequestsDeps {
  readonly outbound: Pick<Outbound, 'toUserUrl'>
  readonly clock: Clock
}

/** A token is sent in a header, so it has the form of one. */
const tokenShape = /^[\x21-\x7e]{1,8192}$/
const lifeMaxSeconds = 365 * 24 * 3600
/** A token is renewed this long before its end, and at most a quarter of its life before. */
const earlyMaxSeconds = 60

/** Asks issuers for tokens. The requests go through the URL guard. Every method throws OAuthFailure, and the reason of the signal when it aborts. */
export class TokenRequests {
  readonly #deps: TokenRequestsDeps
  constructor(deps: TokenRequestsDeps) {
    this.#deps = deps
  }

  /** Gets a token for the client itself. */
  clientCredentials(found: FoundIssuer, client: OAuthClient, signal: CancelSignal): Promise<IssuedToken> {
    return this.#ask(found, client, signal, config => openid.clientCredentialsGrant(config, withScopes({ resource: found.resource }, scopesOf(found, client))))
  }

  /** Gets new tokens for a refresh token. The refresh token may be used up after that, also when this rejects. */
  refresh(found: FoundIssuer, client: OAuthClient, refreshToken: string, signal: CancelSignal): Promise<IssuedToken> {
    return this.#ask(found, client, signal, config => openid.refreshTokenGrant(config, refreshToken, { resource: found.resource }))
  }

  /** Exchanges the code of a callback. Checks `state` and `iss` of the callback. */
  exchangeCode(
    found: FoundIssuer,
    client: OAuthClient,
    callback: URL,
    checks: { state: string; verifier: string },
    signal: CancelSignal,
  ): Promise<IssuedToken> {
    return this.#ask(found, client, signal, config =>
      openid.authorizationCodeGrant(config, callback, { expectedState: checks.state, pkceCodeVerifier: checks.verifier }, { resource: found.resource }),
    )
  }

  /** Returns the address at the issuer where a person consents. */
  async consentUrl(found: FoundIssuer, client: OAuthClient, request: { redirectUri: string; state: string; verifier: string }): Promise<URL> {
    const scopes = scopesOf(found, client)
    // Many issuers give a refresh token only for this scope.
    const isOffline = found.metadata.scopes_supported?.includes('offline_access') === true && !scopes.split(' ').includes('offline_access')
    const wanted = [scopes, isOffline ? 'offline_access' : ''].filter(part => part !== '').join(' ')
    const parameters = {
      redirect_uri: request.redirectUri,
      state: request.state,
      resource: found.resource,
      code_challenge: await openid.calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: 'S256',
    }
    return openid.buildAuthorizationUrl(this.#configuration(found, client), withScopes(parameters, wanted))
  }

  /** Revokes a token (RFC 7009). Returns false when the issuer has no address for that. */
  async revoke(found: Pick<FoundIssuer, 'metadata'>, client: OAuthClient, token: string, hint: string, signal: CancelSignal): Promise<boolean> {
    if (found.metadata.revocation_endpoint === undefined) return false
    const config = this.#configuration(found, client)
    config[openid.customFetch] = guardedOAuthFetch(this.#deps.outbound, signal)
    await openid.tokenRevocation(config, token, { token_type_hint: hint }).catch((error: unknown) => failWith(error, signal))
    return true
  }

  async #ask(
    found: FoundIssuer,
    client: OAuthClient,
    signal: CancelSignal,
    grant: (config: openid.Configuration) => Promise<openid.TokenEndpointResponse>,
  ): Promise<IssuedToken> {
    const config = this.#configuration(found, client)
    config[openid.customFetch] = guardedOAuthFetch(this.#deps.outbound, signal)
    const answer = await grant(config).catch((error: unknown) => failWith(error, signal))
    const { access_token: access, refresh_token: refresh = null, token_type: type, expires_in: life, scope } = answer
    if (type !== 'bearer' || !tokenShape.test(access) || (refresh !== null && !tokenShape.test(refresh)))
      throw new OAuthFailure('protocol', 'the issuer sent a token that is no bearer token')
    return { access, refresh, ...this.#times(life), scopes: (scope ?? scopesOf(found, client)).slice(0, 2000) }
  }

  #times(lifeSeconds: number | undefined): Pick<IssuedToken, 'renewAt' | 'expiresAt'> {
    if (lifeSeconds === undefined || lifeSeconds > lifeMaxSeconds) return { renewAt: null, expiresAt: null }
    const nowMs = this.#deps.clock.nowMs()
    const earlySeconds = Math.min(earlyMaxSeconds, lifeSeconds / 4)
    return { renewAt: new Date(nowMs + (lifeSeconds - earlySeconds) * 1000), expiresAt: new Date(nowMs + lifeSeconds * 1000) }
  }

  #configuration({ metadata }: Pick<FoundIssuer, 'metadata'>, { clientId, clientSecret }: OAuthClient): openid.Configuration {
    const config = new openid.Configuration(
      metadata as openid.ServerMetadata,
      clientId,
      undefined,
      authenticationOf(metadata.token_endpoint_auth_methods_supported, clientSecret),
    )
    // The guard has let http pass only for addresses that the operator permits.
    const addresses = [metadata.token_endpoint, metadata.authorization_endpoint, metadata.revocation_endpoint]
    if (addresses.some(at => at?.startsWith('http:'))) openid.allowInsecureRequests(config)
    return config
  }
}

/** Returns the scopes that are given, or those that the resource names. */
const scopesOf = ({ resourceScopes }: FoundIssuer, { scopes }: OAuthClient): string => (scopes === '' ? resourceScopes.join(' ') : scopes)

const withScopes = (parameters: Record<string, string>, scopes: string): Record<string, string> =>
  scopes === '' ? parameters : { ...parameters, scope: scopes }

/** The default is HTTP Basic (RFC 8414, 2). */
function authenticationOf(methods: readonly string[] = ['client_secret_basic'], secret: string | null): openid.ClientAuth {
  if (secret === null) return openid.None()
  if (methods.includes('client_secret_basic')) return openid.ClientSecretBasic(secret)
  if (methods.includes('client_secret_post')) return openid.ClientSecretPost(secret)
  throw new OAuthFailure('protocol', 'the issuer takes a client secret neither with HTTP Basic nor in the body')
}

/** Errors of RFC 6749 that end a grant, so that a person must consent again. */
const grantErrors = new Set(['invalid_grant', 'interaction_required', 'login_required', 'consent_required'])

function failWith(error: unknown, signal: CancelSignal): never {
  if (signal.aborted) throw signal.reason
  const known = failureIn(error)
  if (known !== null) throw known
  if (error instanceof openid.ResponseBodyError) {
    const code = /^[a-z_]{1,60}$/.test(error.error) ? error.error : 'an error'
    if (grantErrors.has(error.error)) throw new OAuthFailure('grant', `the issuer answered ${code}`)
    if (error.error === 'temporarily_unavailable' || error.error === 'server_error') throw new OAuthFailure('unavailable', `the issuer answered ${code}`)
    throw new OAuthFailure('refused', `the issuer answered ${code}`)
  }
  if (error instanceof openid.AuthorizationResponseError) throw new OAuthFailure('refused', 'the issuer reported an error instead of a code')
  if (error instanceof openid.ClientError) throw new OAuthFailure('protocol', `the answer of the issuer does not hold (${codeOf(error)})`)
  throw error
}

const codeOf = ({ code }: openid.ClientError): string => (code !== undefined && /^[A-Z_]{1,60}$/.test(code) ? code : 'unknown')
