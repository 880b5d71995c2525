import type { TrustBody } from '../use-trust.ts'

/** The fields that most rules leave as they are. */
export interface Advanced {
  readonly audience: string
  readonly claims: string
  readonly scope: string
  readonly ttl: string
  readonly jwks: string
}

export const emptyAdvanced: Advanced = { audience: '', claims: '', scope: '', ttl: '', jwks: '' }

/** Returns the claims of lines such as `environment=production`. Null when a line has no name or no value. */
export function claimsOf(text: string): Readonly<Record<string, string>> | null {
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  const pairs = lines.map(line => [line.slice(0, Math.max(0, line.indexOf('='))).trim(), line.slice(line.indexOf('=') + 1).trim()] as const)
  return pairs.every(([name, value]) => name !== '' && value !== '') ? Object.fromEntries(pairs) : null
}

/** Returns a pasted JWK Set. Null when the text is none. */
export function jwksOf(text: string): TrustBody['jwks'] | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && Array.isArray((value as { keys?: unknown }).keys) ? (value as NonNullable<TrustBody['jwks']>) : null
  } catch {
    return null
  }
}

/** Returns the fields of a request. Null while one of them is wrong. What is empty is left out. */
export function advancedBody({ audience, claims, scope, ttl, jwks }: Advanced): Partial<TrustBody> | null {
  const readClaims = claimsOf(claims)
  const keys = jwks.trim() === '' ? undefined : jwksOf(jwks)
  const seconds = ttl.trim() === '' ? undefined : Number(ttl)
  if (readClaims === null || keys === null || (seconds !== undefined && !(Number.isSafeInteger(seconds) && seconds > 0))) return null
  return {
    ...(audience.trim() === '' ? {} : { audience: audience.trim() }),
    ...(Object.keys(readClaims).length === 0 ? {} : { claims: readClaims }),
    ...(scope.trim() === '' ? {} : { scope: scope.trim() }),
    ...(seconds === undefined ? {} : { ttl_s: seconds }),
    ...(keys === undefined ? {} : { jwks: keys }),
  }
}
