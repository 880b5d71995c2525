import * as openid from 'openid-client'
import type { Clock } from '../../../platform/clock.ts'
import type { Identified, IdentityProvider } from './identity-provider.ts'
import { providerTimeoutMs } from './provider-fetch.ts'

export interface OpenidIssuerOptions {
  readonly name: string
  readonly title: string
  readonly icon?: string
  /** The URL of the issuer, exactly as in its tokens. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  /** The parameter `prompt` of the address to which the browser is sent. */
  readonly prompt?: string
  /** How far the clock of the issuer may be from the clock of this gateway. */
  readonly clockSkewSeconds: number
  readonly fetch: openid.CustomFetch
  readonly clock: Clock
  /** Names of claims without which the id token is not enough. The userinfo endpoint is then asked, if the issuer has one. */
  readonly wanted: readonly string[]
  /** Returns the identity that the claims state. Throws `bad_request` for a person whom this issuer may not sign in. */
  identityOf(claims: Claims & { readonly sub: string }): Identified
}

/** What an issuer states about a person. */
export type Claims = Readonly<Record<string, unknown>>

/** How long a discovery document is used. */
const discoveryTtlMs = 3600_000

/**
 * Signs people in over OpenID Connect: discovery, authorization code with PKCE and nonce, and a signed id token. The signing keys are read at each
 * sign-in, so a new key works immediately, and a withdrawn key never does. Decision 0885 says why.
 */
export function createOpenidIssuer(options: OpenidIssuerOptions): IdentityProvider {
  const metadata = discovered(options)
  return {
    name: options.name,
    title: options.title,
    ...(options.icon === undefined ? {} : { icon: options.icon }),
    async authorizationUrl(redirectUri, { state, verifier, nonce }) {
      return openid.buildAuthorizationUrl(configurationOf(options, await metadata()), {
        redirect_uri: redirectUri,
        scope: options.scopes.join(' '),
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(options.prompt === undefined ? {} : { prompt: options.prompt }),
      })
    },
    async identify(callbackUrl, { state, verifier, nonce }) {
      const configuration = configurationOf(options, await metadata())
      const tokens = await openid.authorizationCodeGrant(configuration, callbackUrl, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const stated = tokens.claims()
      if (stated === undefined) throw new openid.ClientError('the provider sent no id token')
      const hasAll = options.wanted.every(name => claimOf(stated, name) !== undefined)
      if (hasAll || configuration.serverMetadata().userinfo_endpoint === undefined) return options.identityOf(stated)
      // An issuer may state the claims of a scope there only. The reply must name the same person, and the id token has priority.
      const more = await openid.fetchUserInfo(configuration, tokens.access_token, stated.sub)
      return options.identityOf({ ...more, ...stated })
    },
  }
}

/** Returns a claim by its name, or by a path with dots, such as `realm_access.roles`. A claim with the whole name has priority. */
export function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name.split('.').reduce<unknown>((found, part) => {
    return typeof found === 'object' && found !== null && Object.hasOwn(found, part) ? (found as Claims)[part] : undefined
  }, claims)
}

/** Returns a claim that is a text, or null. */
export const textClaim = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** Returns a configuration that has cached no signing keys. */
function configurationOf(options: OpenidIssuerOptions, metadata: openid.ServerMetadata): openid.Configuration {
  const { clientId, clientSecret, clockSkewSeconds, fetch, issuer } = options
  const auth = clientAuthOf(metadata)(clientSecret)
  const configuration = new openid.Configuration(metadata, clientId, { [openid.clockTolerance]: clockSkewSeconds }, auth)
  configuration[openid.customFetch] = fetch
  configuration.timeout = providerTimeoutMs / 1000
  // The signature of the id token is checked, even though the token comes directly from the issuer.
  openid.enableNonRepudiationChecks(configuration)
  if (isInsecure(issuer)) openid.allowInsecureRequests(configuration)
  return configuration
}

const isInsecure = (issuer: string): boolean => issuer.startsWith('http:')

/** Returns how the client proves itself: as the issuer says, and by HTTP Basic when it says nothing, as OpenID Connect Discovery demands. */
function clientAuthOf({ token_endpoint_auth_methods_supported: methods }: openid.ServerMetadata): (secret: string) => openid.ClientAuth {
  if (methods === undefined) return openid.ClientSecretBasic
  return !methods.includes('client_secret_post') && methods.includes('client_secret_basic') ? openid.ClientSecretBasic : openid.ClientSecretPost
}

/**
 * Returns a function that gives the discovered metadata. The function fetches them at its first call and when the last ones are too old. It does not
 * cache a failure.
 */
function discovered({ issuer, clientId, fetch, clock }: OpenidIssuerOptions): () => Promise<openid.ServerMetadata> {
  let current: { readonly found: Promise<openid.ServerMetadata>; readonly atMs: number } | null = null
  const discover = async (): Promise<openid.ServerMetadata> => {
    const found = await openid.discovery(new URL(issuer), clientId, undefined, openid.None(), {
      [openid.customFetch]: fetch,
      timeout: providerTimeoutMs / 1000,
      execute: isInsecure(issuer) ? [openid.allowInsecureRequests] : [],
    })
    return found.serverMetadata()
  }
  return () => {
    if (current !== null && clock.monotonicMs() - current.atMs < discoveryTtlMs) return current.found
    const made = { found: discover(), atMs: clock.monotonicMs() }
    current = made
    made.found.catch(() => {
      if (current === made) current = null
    })
    return made.found
  }
}
