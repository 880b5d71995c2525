/** Checks the fields of a trust rule. Each check throws `bad_request` with the name of the field. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'

/** Texts that the database accepts unchanged: no control characters, no lone surrogates. */
export const plainText = /^[^\p{Cc}\p{Cs}]*$/u

const keysMax = 50
/** Maximum length of all keys of one issuer together, as JSON. Every exchange reads the rules of its issuer, and fetched keys stay in memory. */
export const keysTextMax = 32 * 1024
/** Minimum size of an RSA key in bits. Signatures of smaller keys are not accepted. */
const rsaBitsMin = 2048
/** Maximum size of an RSA key in bits. Larger keys and long exponents make every signature check expensive. */
const rsaBitsMax = 4096
const rsaExponentBitsMax = 32

const word = z.string().max(200).regex(plainText)
/** One number of a key. Longer texts are refused unread. */
const number = z
  .string()
  .max(2_800)
  .regex(/^[\w=-]*$/)
  .optional()

/**
 * The schema of one public key. The result has only the fields that verification needs, each with a maximum length. A key with a secret part does not
 * match.
 */
export const publicKey = z.object({
  kty: z.enum(['RSA', 'EC', 'OKP'], 'must be RSA, EC or OKP: keys that verify, no shared secrets'),
  kid: word.optional(),
  alg: word.optional(),
  use: word.optional(),
  key_ops: z.array(word).max(10).optional(),
  crv: word.optional(),
  x: number,
  y: number,
  n: number,
  e: number,
  d: z.never('makes this a private key. Paste the public part only, and replace this key at its issuer').optional(),
})

/**
 * The schema of a pasted JWK Set. The result contains only keys that can verify, with only the fields that verification needs. A set that contains a
 * secret was pasted by mistake and is refused. A set with an incomplete key is refused too, because every token would fail with it.
 */
export const pastedKeys = z.object({
  keys: z
    .array(
      publicKey.refine(isUsable, {
        message: 'is not a whole public key, or an RSA key of less than 2048 bits, of more than 4096 bits or with an exponent of more than 32 bits.',
      }),
    )
    .min(1)
    .max(keysMax)
    .refine(keys => JSON.stringify(keys).length <= keysTextMax, `at most ${keysTextMax} characters together. Leave out keys that do not sign any more`),
})

/** Returns whether a signature check with this key takes little time. Only RSA keys can be too large. For other keys, the curve determines the size. */
export function isCheapKey({ kty, n, e }: { readonly kty: string; readonly n?: unknown; readonly e?: unknown }): boolean {
  return kty !== 'RSA' || (bitsOf(n) <= rsaBitsMax && bitsOf(e) <= rsaExponentBitsMax)
}

/** Returns the number of bits of an integer in base64url. Returns 0 for any other text. */
function bitsOf(value: unknown): number {
  if (typeof value !== 'string') return 0
  const bytes = Buffer.from(value, 'base64url')
  const first = bytes.findIndex(byte => byte !== 0)
  return first < 0 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}

function isUsable(jwk: { readonly kty: string }): boolean {
  if (!isCheapKey(jwk)) return false
  try {
    const key: JsonWebKey = { ...jwk }
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({ format: 'jwk', key })
    return asymmetricKeyType !== 'rsa' || (asymmetricKeyDetails?.modulusLength ?? 0) >= rsaBitsMin
  } catch {
    return false
  }
}

/** The places where the keys of an issuer may be. */
export interface KeyPlaces {
  readonly issuer: string
  readonly jwksUri: string | null
  readonly hasKeys: boolean
}

/**
 * Checks that the gateway may fetch the keys of the issuer. The gateway fetches keys only from addresses to which users may direct requests. With
 * `jwks_uri` or pasted keys, the issuer may be any text.
 */
export function checkPlaces({ issuer, jwksUri, hasKeys }: KeyPlaces, guard: UrlGuard, baseUrl: string): void {
  if (jwksUri !== null && hasKeys) throw fail('bad_request', { message: 'Give jwks_uri or jwks, not both.' })
  if (issuer === baseUrl)
    throw fail('bad_request', { message: 'issuer: this gateway itself needs no rule. Its tokens are exchanged for narrower ones as they are.' })
  if (jwksUri !== null) checkUrl('jwks_uri', jwksUri, guard)
  else if (!hasKeys) {
    const url = checkUrl('issuer', issuer, guard)
    if (url.search !== '' || url.hash !== '')
      throw fail('bad_request', { message: 'issuer: a URL without query and fragment, written exactly as in the iss of its tokens.' })
  }
}

function checkUrl(field: string, text: string, guard: UrlGuard): URL {
  if (!URL.canParse(text)) throw fail('bad_request', { message: `${field}: must be an https:// URL.` })
  const url = new URL(text)
  guard.check(url)
  return url
}

/**
 * Issuers that sign tokens for every account on their service. A rule for such an issuer must begin its subject as given here, or name one of the
 * claims given here.
 */
const sharedIssuers = [
  {
    issuer: 'https://token.actions.githubusercontent.com',
    subject: /^repo:[^*/]+\//,
    claims: ['repository_owner', 'repository_owner_id', 'repository', 'repository_id'],
    example: 'repo:<owner>/<repository>:*',
  },
  {
    issuer: 'https://gitlab.com',
    subject: /^project_path:[^*/]+\//,
    claims: ['namespace_id', 'namespace_path', 'project_id', 'project_path'],
    example: 'project_path:<group>/<project>:*',
  },
  {
    issuer: 'https://agent.buildkite.com',
    subject: /^organization:[^*:]+:/,
    claims: ['organization_id', 'organization_slug'],
    example: 'organization:<organization>:pipeline:<pipeline>:*',
  },
  {
    issuer: 'https://app.terraform.io',
    subject: /^organization:[^*:]+:/,
    claims: ['terraform_organization_id', 'terraform_organization_name'],
    example: 'organization:<organization>:project:*',
  },
  { issuer: 'https://accounts.google.com', subject: /^[^*]+$/, claims: ['hd', 'email'], example: 'the number of one account, without *' },
] as const

/** Returns whether everybody can get tokens of the issuer. Only the audience of such a token shows its organisation. */
export const isShared = (issuer: string): boolean => sharedOf(issuer) !== undefined

/**
 * Returns the entry of a shared issuer. Some issuers (Google, for example) write their own name with and without the scheme, or with a slash at the
 * end.
 */
const sharedOf = (issuer: string) => sharedIssuers.find(each => bareIssuer(each.issuer) === bareIssuer(issuer))
const bareIssuer = (issuer: string): string => issuer.replace(/^https:\/\//, '').replace(/\/$/, '')

/**
 * Throws `bad_request` when the rule accepts too many identities. A rule may not accept everybody whom the issuer knows. A rule for a public issuer
 * may not accept other people's accounts.
 */
export function checkConditions(issuer: string, subject: string, claims: Readonly<Record<string, string>>): void {
  if (subject.startsWith('*')) throw fail('bad_request', { message: 'subject: must begin with something other than *, so that the rule names somebody.' })
  const wrong = ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'].find(name => Object.hasOwn(claims, name))
  if (wrong !== undefined) throw fail('bad_request', { message: `claims: ${wrong} is checked already; subject, issuer and audience have fields of their own.` })
  const shared = sharedOf(issuer)
  if (shared === undefined || shared.subject.test(subject)) return
  const isPinned = shared.claims.some(name => Object.hasOwn(claims, name) && !claims[name]?.includes('*'))
  if (isPinned) return
  throw fail('bad_request', {
    message: `subject: everybody has tokens of this issuer, so name whose you take: ${shared.example}, or one of the claims ${shared.claims.join(', ')} without *.`,
  })
}
