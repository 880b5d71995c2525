/** Reads the unverified claims of external tokens, and verifies the tokens with the keys of their issuer. */
import { createLocalJWKSet, decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { IssuerKeys, KeySet, KeySource } from './oauth-issuer-keys.ts'
import { isCheapKey, plainText } from './trust-checks.ts'
import type { MatchingTrustRow, TrustRow } from './trust-queries.ts'

/** The accepted signature algorithms. Algorithms with a shared secret are not accepted, and neither is `none`. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Maximum length of a token. A longer text is refused. */
const tokenLengthMax = 16_384
const subjectLengthMax = 1_000
/** Maximum difference between the clocks of issuer and gateway. */
const skewSeconds = 30
/** Maximum age of an accepted token. Some tokens live long: Kubernetes issues tokens that live for years on request. */
const ageMax = '24h'

/** The unverified claims of a token. */
export interface Unverified {
  readonly issuer: string
  readonly audiences: readonly string[]
}

const said = z.object({ iss: z.string().min(1).regex(plainText), aud: z.union([z.string(), z.array(z.string()).max(50)]) })
const pasted = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) })

/** Returns the issuer and audiences that a token names, if a rule can name them. Throws `bad_request` for a text that is not a JWT. */
export function readUnverified(token: string): Unverified {
  if (token.length > tokenLengthMax) throw notTaken('it is too long')
  try {
    const { iss, aud } = said.parse(decodeJwt(token))
    return { issuer: iss, audiences: [aud].flat().filter(each => plainText.test(each)) }
  } catch (cause) {
    throw notTaken('it is no JWT that names its issuer (iss) and audience (aud)', cause)
  }
}

/** Where the keys for tokens of this rule are. `jwks` are the pasted keys. */
type Place = Pick<TrustRow, 'issuer' | 'jwksUri' | 'jwks'>

/** Returns a text for the place of the keys. Two rules with the same text share the same keys. */
export function placeOf({ id, issuer, jwksUri, hasKeys, keysDigest }: MatchingTrustRow): string {
  return JSON.stringify([issuer, jwksUri, hasKeys ? (keysDigest ?? id) : null])
}

/**
 * Returns the claims of a genuine token that is valid now and has the rule's issuer and audience. It does not check whether the claims meet the rule.
 * Throws `issuer_unavailable`, and `bad_request` with a message that says what is wrong.
 */
export async function verifySubject(
  token: string,
  rule: Place & Pick<TrustRow, 'audience'>,
  keys: IssuerKeys,
  nowMs: number,
): Promise<JWTPayload & { readonly sub: string }> {
  const check = async (set: KeySet): Promise<JWTPayload> => {
    const options = {
      algorithms,
      issuer: rule.issuer,
      audience: rule.audience,
      clockTolerance: skewSeconds,
      maxTokenAge: ageMax,
      currentDate: new Date(nowMs),
      requiredClaims: ['exp', 'iat', 'sub'],
    }
    return (await jwtVerify(token, set, options)).payload
  }
  try {
    const { sub, ...claims } = await checked(rule, keys, check)
    if (typeof sub !== 'string' || sub === '' || sub.length > subjectLengthMax) throw notTaken('its sub is missing or too long')
    return { ...claims, sub }
  } catch (error) {
    throw asRefusal(error)
  }
}

/** Runs the check with the keys of a place. When the key id of the token is unknown, the gateway fetches the keys again. */
async function checked({ issuer, jwksUri, jwks }: Place, keys: IssuerKeys, check: (set: KeySet) => Promise<JWTPayload>): Promise<JWTPayload> {
  if (jwks !== null) return check(createLocalJWKSet({ keys: pasted.parse(jwks).keys.filter(isCheapKey) }))
  const source: KeySource = jwksUri === null ? { issuer } : { jwksUri }
  try {
    return await check(await keys.of(source))
  } catch (error) {
    const newer = error instanceof errors.JWKSNoMatchingKey ? await keys.again(source) : null
    if (newer === null) throw error
    return check(newer)
  }
}

/**
 * Returns the error for the holder of a refused token. Errors of jose or the crypto library about malformed keys and texts count as refusals, not as
 * failures of the gateway.
 */
function asRefusal(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return notTaken('it has expired or was issued more than a day ago. Get a new one from its issuer', error)
  if (error instanceof errors.JWTClaimValidationFailed) return notTaken(`its claim ${error.claim} is missing or not as it must be`, error)
  if (error instanceof errors.JOSEAlgNotAllowed) return notTaken('its algorithm is not taken here', error)
  if (error instanceof errors.JWKSNoMatchingKey) return notTaken('its issuer has no key of that id', error)
  if (error instanceof errors.JWKSMultipleMatchingKeys) return notTaken('it does not say which key of its issuer signed it (kid)', error)
  if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException) return notTaken('its signature does not verify', error)
  return error
}

/** Returns the refusal of a subject token: `invalid_request`, as RFC 8693 §2.2.2 says. */
export function notTaken(why: string, cause?: unknown): GatewayError {
  return fail('bad_request', { message: `subject_token is not taken: ${why}.`, ...(cause === undefined ? {} : { cause }) })
}
