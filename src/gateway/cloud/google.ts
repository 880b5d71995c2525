/** Access tokens of Google: of the identity of this process, and of service accounts that were given as keys. */
import { createPrivateKey } from 'node:crypto'
import type { Clock } from '../../platform/clock.ts'
import { CredentialsError } from './authorise.ts'
import type { AccessToken } from './bearer.ts'
import type { GivenCredentials } from './given-credentials.ts'
import { postForToken, type TokenDeps } from './token-request.ts'

const scope = 'https://www.googleapis.com/auth/cloud-platform'
const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** The life of an assertion, which Google bounds by an hour. */
const assertionSeconds = 3_600

/** The part of a client of google-auth-library that is used. */
interface AuthClient {
  getAccessToken(): Promise<{ token?: string | null | undefined }>
  readonly credentials?: { readonly expiry_date?: number | null }
  readonly quotaProjectId?: string | undefined
}

/** The life of a token whose client does not say it. */
const lifeDefaultMs = 300_000

/**
 * Returns a token by the Application Default Credentials of this process. A new client is made each time, so a replaced credential file is read. The library
 * is loaded at the first call.
 */
export async function processGoogleToken({ clock }: { readonly clock: Pick<Clock, 'nowMs'> }): Promise<AccessToken> {
  try {
    const { GoogleAuth } = await import('google-auth-library')
    const client: AuthClient = await new GoogleAuth({ scopes: [scope] }).getClient()
    const { token } = await client.getAccessToken()
    if (typeof token !== 'string' || token === '') throw new Error('no token')
    const endMs = client.credentials?.expiry_date ?? clock.nowMs() + lifeDefaultMs
    return { token, endMs, ...(client.quotaProjectId === undefined ? {} : { headers: { 'x-goog-user-project': client.quotaProjectId } }) }
  } catch (cause) {
    throw new CredentialsError('this gateway has no identity at Google: set GOOGLE_APPLICATION_CREDENTIALS, or run it with a service account', { cause })
  }
}

type ServiceAccount = Extract<GivenCredentials, { kind: 'google' }>

/** Returns a token of a service account. The token endpoint is the operator's setting, whatever the account's file names. */
export async function serviceAccountToken(account: ServiceAccount, tokenUrl: string, deps: TokenDeps): Promise<AccessToken> {
  const { SignJWT } = await import('jose')
  const issuedAt = Math.floor(deps.clock.nowMs() / 1000)
  const assertion = await new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(account.privateKeyId === null ? {} : { kid: account.privateKeyId }) })
    .setIssuer(account.clientEmail)
    .setAudience(tokenUrl)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + assertionSeconds)
    .sign(createPrivateKey(account.privateKey.reveal()))
  return postForToken(tokenUrl, { grant_type: grant, assertion }, 'Google', deps)
}
