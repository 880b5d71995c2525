/** The claims of agent tokens, and how a token names the tokens before it. */
import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import type { AgentPrincipal } from '../../platform/security/principal.ts'
import { scopesOfClaims } from './token-scopes.ts'

/** The `act` claim of RFC 8693: the actor now, inside it those before. */
export interface Act {
  readonly iss?: string | undefined
  readonly sub: string
  readonly act?: Act | undefined
}

/** Tokens, and one trust rule, that a token may be made from in sequence. */
const viaMax = 8

const actShape: z.ZodType<Act> = z.lazy(() => z.object({ iss: z.string().optional(), sub: z.string(), act: actShape.optional() }))

/** The claims of a token; `scopes` is what it may be used for. */
export const claimsShape = z
  .object({
    org: z.int(),
    uid: z.int().nullable(),
    key_id: z.int(),
    agent: z.object({ id: z.int(), name: z.string(), epoch: z.int(), ancestors: z.array(z.int()).max(3).default([]) }),
    sub: z.string(),
    jti: z.string(),
    iat: z.int(),
    exp: z.int(),
    act: actShape.optional(),
    via: z.array(z.string()).max(viaMax).default([]),
    scope: z.string().optional(),
    ver: z.int().optional(),
  })
  .transform(claims => ({ ...claims, scopes: scopesOfClaims(claims) }))
/** The claims of a token whose signature, issuer, audience, type and times were right. */
export type AgentClaims = z.output<typeof claimsShape>

/** Returns the `via` of a token that is made from this one. Throws `bad_request` when the sequence is too long. */
export function viaOf({ tokenIds }: Pick<AgentPrincipal, 'tokenIds'>): readonly string[] {
  if (tokenIds.length > viaMax) throw fail('bad_request', { message: 'This token was made of too many others in a row. Use one of those before it.' })
  return tokenIds
}

/** Who let the agent act: the agent above it, and above that one (RFC 8693). */
export function actOf(ancestorIds: readonly number[]): { act?: Act } {
  const [nearest, ...above] = ancestorIds
  return nearest === undefined ? {} : { act: { sub: `agent:${nearest}`, ...actOf(above) } }
}
