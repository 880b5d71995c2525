import type { TrustRule } from '../use-trust.ts'

/** What a token says of itself. Nobody has checked it. */
export interface TokenClaims {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly subject: string
  readonly expMs: number | null
  readonly nbfMs: number | null
  readonly all: Readonly<Record<string, unknown>>
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Reads the claims of a token without checking its signature. Null when the text is no token. */
export function claimsIn(token: string): TokenClaims | null {
  const [, body = '', signature] = token.split('.')
  if (signature === undefined) return null
  try {
    const bytes = Uint8Array.from(atob(body.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0))
    const all: unknown = JSON.parse(decoder.decode(bytes))
    if (typeof all !== 'object' || all === null || Array.isArray(all)) return null
    const { iss, aud, sub, exp, nbf } = all as Record<string, unknown>
    return {
      issuer: typeof iss === 'string' ? iss : '',
      audiences: (Array.isArray(aud) ? aud : [aud]).filter(each => typeof each === 'string'),
      subject: typeof sub === 'string' ? sub : '',
      expMs: typeof exp === 'number' ? exp * 1000 : null,
      nbfMs: typeof nbf === 'number' ? nbf * 1000 : null,
      all: all as Record<string, unknown>,
    }
  } catch {
    return null
  }
}

/** Returns whether a text fits a pattern, in which `*` is any run of characters. The gateway compares in the same way. */
export function fitsPattern(pattern: string, text: string): boolean {
  const [head = '', ...parts] = pattern.split('*')
  const tail = parts.pop()
  if (tail === undefined) return text === pattern
  if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false
  const end = text.length - tail.length
  let at = head.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

function claimFits(pattern: string, value: unknown): boolean {
  if (typeof value === 'string') return fitsPattern(pattern, value)
  if (typeof value === 'number') return Number.isSafeInteger(value) && pattern === String(value)
  if (typeof value === 'boolean') return pattern === String(value)
  return Array.isArray(value) && value.some(each => typeof each === 'string' && fitsPattern(pattern, each))
}

export type RulePart = 'issuer' | 'audience' | 'subject' | 'claims'

/** Returns the parts of a rule that the token does not have. Empty: the rule takes it, if its signature is genuine. */
export function differencesOf(rule: TrustRule, token: TokenClaims): readonly RulePart[] {
  const fits: Readonly<Record<RulePart, boolean>> = {
    issuer: rule.issuer === token.issuer,
    audience: token.audiences.includes(rule.audience),
    subject: fitsPattern(rule.subject, token.subject),
    claims: Object.entries(rule.claims).every(([name, pattern]) => claimFits(pattern, Object.hasOwn(token.all, name) ? token.all[name] : undefined)),
  }
  return (['issuer', 'audience', 'subject', 'claims'] as const).filter(part => !fits[part])
}
