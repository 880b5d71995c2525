import * as openid from 'openid-client'
import { z } from 'zod'
import type { IdentityProvider } from './identity-provider.ts'
import { providerTimeoutMs } from './provider-fetch.ts'

export interface GithubOptions {
  /** The setting GITHUB_BASE_URL. The path `/login/oauth` is appended. */
  readonly siteUrl: string
  /** The setting GITHUB_API_URL. The path `/user` is appended. */
  readonly apiUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly fetch: openid.CustomFetch
}

const accountShape = z.object({
  id: z.int().positive(),
  login: z.string(),
  name: z.string().nullish(),
  avatar_url: z.string().nullish(),
})
const addressesShape = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() })).max(1000)
const isInsecure = (url: string): boolean => url.startsWith('http:')

/**
 * Signs people in over OAuth 2 as GitHub implements it. It uses the authorization code with PKCE, and then reads the account and its primary address
 * over the API.
 */
export function createGithub({ siteUrl, apiUrl, clientId, clientSecret, fetch }: GithubOptions): IdentityProvider {
  const configuration = new openid.Configuration(
    { issuer: siteUrl, authorization_endpoint: `${siteUrl}/login/oauth/authorize`, token_endpoint: `${siteUrl}/login/oauth/access_token` },
    clientId,
    undefined,
    openid.ClientSecretPost(clientSecret),
  )
  configuration[openid.customFetch] = fetch
  configuration.timeout = providerTimeoutMs / 1000
  if (isInsecure(siteUrl) || isInsecure(apiUrl)) openid.allowInsecureRequests(configuration)

  async function read<T>(token: string, path: string, shape: z.ZodType<T>): Promise<T> {
    const headers = new Headers({ accept: 'application/vnd.github+json' })
    const response = await openid.fetchProtectedResource(configuration, token, new URL(`${apiUrl}${path}`), 'GET', undefined, headers)
    const parsed = shape.safeParse(response.ok ? await response.json() : null)
    if (!parsed.success) throw new openid.ClientError(`GET ${path} answered ${response.status} in another shape than expected`)
    return parsed.data
  }

  return {
    name: 'github',
    title: 'GitHub',
    async authorizationUrl(redirectUri, { state, verifier }) {
      return openid.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: 'read:user user:email',
        state,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
    },
    async identify(callbackUrl, { state, verifier }) {
      const tokens = await openid.authorizationCodeGrant(configuration, callbackUrl, { expectedState: state, pkceCodeVerifier: verifier })
      const account = await read(tokens.access_token, '/user', accountShape)
      const addresses = await read(tokens.access_token, '/user/emails', addressesShape)
      return {
        provider: 'github',
        subject: String(account.id),
        verifiedEmail: addresses.find(address => address.primary && address.verified)?.email ?? null,
        name: account.name ?? account.login,
        avatarUrl: account.avatar_url ?? null,
      }
    },
  }
}
