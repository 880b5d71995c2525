import { ClientError, ResponseBodyError } from 'openid-client'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { ProviderUnreachableError } from './provider-fetch.ts'

/** Error codes that a provider sends when this gateway's own client id, secret or callback URL is wrong. */
const clientErrors = new Set(['invalid_client', 'unauthorized_client', 'incorrect_client_credentials', 'redirect_uri_mismatch'])
const unreachableCodes = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON', 'OAUTH_PARSE_ERROR'])
/** Maximum number of nested `cause` errors that are examined. */
const depthMax = 5

/**
 * Returns the error for a person whose sign-in failed at an identity provider. The error is `unavailable` when the person can try later or ask the
 * operator. Otherwise it is `bad_request`.
 */
export function identityFailure({ title }: Pick<IdentityProvider, 'title'>, cause: unknown): GatewayError {
  // The claims of a proper reply are refused with a reason of their own.
  if (cause instanceof GatewayError) return cause
  const code = oauthErrorOf(cause)
  if (clientErrors.has(code))
    return fail('unavailable', {
      message: `${title} does not accept the client id, secret or callback URL of this gateway. The operator has to correct them.`,
      cause,
    })
  if (code === 'unreachable' || unreachableCodes.has(code))
    return fail('unavailable', { message: `${title} did not answer as it should. Try again in a minute, or sign in another way at /auth.`, cause })
  return fail('bad_request', { message: `The answer of ${title} did not hold, so nobody was signed in. Begin again at /auth.`, cause })
}

/** Returns a short code for the log that contains no data of the provider: an OAuth error code, a code of the client, or the name of the error. */
export function oauthErrorOf(thrown: unknown): string {
  for (const error of causesOf(thrown)) if (error instanceof ProviderUnreachableError) return 'unreachable'
  for (const error of causesOf(thrown)) {
    const said = error instanceof ResponseBodyError ? error.error : errorInBody(error)
    if (said !== null && /^[a-z_]{1,60}$/.test(said)) return said
  }
  if (thrown instanceof ClientError && thrown.code !== undefined) return thrown.code
  return thrown instanceof Error ? thrown.name : 'unknown'
}

function causesOf(thrown: unknown): unknown[] {
  const found: unknown[] = []
  let next = thrown
  while (typeof next === 'object' && next !== null && found.length < depthMax) {
    found.push(next)
    next = 'cause' in next ? next.cause : null
  }
  return found
}

/** Returns the error code in the body of a reply. GitHub reports errors with status 200, and the OAuth client keeps the body in the cause of its error. */
function errorInBody(cause: unknown): string | null {
  if (typeof cause !== 'object' || cause === null || !('body' in cause)) return null
  const { body } = cause
  return typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string' ? body.error : null
}
