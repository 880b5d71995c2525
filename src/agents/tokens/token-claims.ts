/** The claims of agent tokens, and the ids by which a token refers to the tokens that it was made from. */
import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import type { AgentPrincipal } from '../../platform/security/principal.ts'
import { scopesOfClaims } from './token-scopes.ts'

/** The `act` claim of RFC 8693. The present actor contains the actors before it. */
export interface Act {
  readonly iss?: string | undefined
  readonly sub: string
  readonly act?: Act | undefined
}

/** Maximum length of the sequence that a token is made from. The sequence consists of tokens and at most one trust rule. */
const viaMax = 8

const actShape: z.ZodType<Act> = z.lazy(() => z.object({ iss: z.string().optional(), sub: z.string(), act: actShape.optional() }))

/** The claims of a token. `scopes` is derived from them and says what the token may be used for. */
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
    run: z.string().optional(),
  })
  .transform(claims => ({ ...claims, scopes: scopesOfClaims(claims) }))
/** The claims of a token after its signature, issuer, audience, type and times were verified. */
export type AgentClaims = z.output<typeof claimsShape>

/** Returns the `via` list of a token that is made from this one. Throws `bad_request` when the list would be too long. */
export function viaOf({ tokenIds }: Pick<AgentPrincipal, 'tokenIds'>): readonly string[] {
  if (tokenIds.length > viaMax) throw fail('bad_request', { message: 'This token was made of too many others in a row. Use one of those before it.' })
  return tokenIds
}

/**
 * Returns the actors that let the agent act, nested as RFC 8693 requires. The agent directly above is the outermost actor and contains the agent
 * above that one.
 */
export function actOf(ancestorIds: readonly number[]): { act?: Act } {
  const [nearest, ...above] = ancestorIds
  return nearest === undefined ? {} : { act: { sub: `agent:${nearest}`, ...actOf(above) } }
}
