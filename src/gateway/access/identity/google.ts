import * as openid from 'openid-client'
import type { Clock } from '../../../platform/clock.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { providerTimeoutMs } from './provider-fetch.ts'

export interface GoogleOptions {
  /** The setting GOOGLE_ISSUER. It may be any OpenID Connect issuer. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly fetch: openid.CustomFetch
  readonly clock: Clock
}

/** How long a discovery document is used. The OpenID client caches the signing keys itself. */
const discoveryTtlMs = 3600_000

/** Signs people in over OpenID Connect: discovery, authorization code with PKCE and nonce, and a signed id token. */
export function createGoogle(options: GoogleOptions): IdentityProvider {
  const configuration = discovered(options)
  return {
    name: 'google',
    title: 'Google',
    async authorizationUrl(redirectUri, { state, verifier, nonce }) {
      return openid.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        prompt: 'select_account',
      })
    },
    async identify(callbackUrl, { state, verifier, nonce }) {
      const tokens = await openid.authorizationCodeGrant(await configuration(), callbackUrl, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) throw new openid.ClientError('the provider sent no id token')
      const { email, email_verified: verified } = claims
      const isVerified = verified === true || verified === 'true'
      return {
        provider: 'google',
        subject: claims.sub,
        verifiedEmail: isVerified && typeof email === 'string' ? email : null,
        name: textOf(claims['name']),
        avatarUrl: textOf(claims['picture']),
      }
    },
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/**
 * Returns a function that gives the discovered configuration. The function fetches the configuration at its first call and when the last one is too
 * old. It does not cache a failure.
 */
function discovered({ issuer, clientId, clientSecret, fetch, clock }: GoogleOptions): () => Promise<openid.Configuration> {
  let current: { readonly found: Promise<openid.Configuration>; readonly atMs: number } | null = null
  const discover = (): Promise<openid.Configuration> =>
    openid.discovery(new URL(issuer), clientId, undefined, openid.ClientSecretPost(clientSecret), {
      [openid.customFetch]: fetch,
      timeout: providerTimeoutMs / 1000,
      // The signature of the id token is checked, even though the token comes directly from the issuer.
      execute: [openid.enableNonRepudiationChecks, ...(issuer.startsWith('http:') ? [openid.allowInsecureRequests] : [])],
    })
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
