import type { BudgetStatus } from '../../gateway/limits/budgets/budgets.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { BearerPrincipal, Principal } from '../../platform/security/principal.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { AgentBudgets } from '../agent-budgets.ts'
import type { AgentTokens } from '../tokens/agent-tokens.ts'
import type { RevokedTokens } from '../tokens/revoked-tokens.ts'

export interface TokenIntrospectionDeps {
  readonly tokens: AgentTokens
  readonly revokedTokens: RevokedTokens
  readonly baseUrl: () => string
  looksLikeKey(token: string): boolean
  readonly budgets: Pick<AgentBudgets, 'list'>
}

/** Answers requests of key owners about single agent tokens: what a token is valid for now (RFC 7662), and its revocation (RFC 7009). */
export class TokenIntrospection {
  readonly #deps: TokenIntrospectionDeps

  constructor(deps: TokenIntrospectionDeps) {
    this.#deps = deps
  }

  /**
   * Returns a description of a token of the caller's organisation. Returns `{active: false}` for every other text. Throws 503 while the state of the
   * token is unknown.
   */
  async introspect(caller: Principal, token: string) {
    const { tokens, baseUrl } = this.#deps
    const live = await orNull(async () => {
      const principal = await tokens.principalOf(token)
      tokens.recheck(principal)
      return { principal, claims: await tokens.verify(token) }
    })
    if (live === null || live.principal.orgId !== caller.orgId) return { active: false as const }
    const { claims, principal } = live
    const { agent, sub, jti, iat, exp, act } = claims
    const budgets = await this.#deps.budgets.list(claims.org, [agent.id, ...agent.ancestors])
    const capUinr = budgets.get(agent.id)?.capUinr ?? null
    const leftUinr = leastLeft([...budgets.values()])
    return {
      active: true as const,
      iss: baseUrl(),
      sub,
      aud: [baseUrl(), `${baseUrl()}/mcp`],
      client_id: sub,
      token_type: 'Bearer' as const,
      scope: principal.scopes.join(' '),
      iat,
      nbf: iat,
      exp,
      jti,
      ...(act === undefined ? {} : { act }),
      agent: { id: agent.id, name: agent.name, status: 'active' as const, ancestor_ids: [...agent.ancestors] },
      key_id: claims.key_id,
      monthly_budget_inr: capUinr === null ? null : inrFromUinr(capUinr),
      budget_remaining_inr: leftUinr === null ? null : inrFromUinr(leftUinr),
    }
  }

  /**
   * Ends one token and the tokens made from it. They are refused and their running calls are cut. The change is in force on this process when the
   * promise resolves, and on other processes within a second. An expired token is revoked too, because tokens made from it may still be valid. A text
   * that is not a token, or a token of another organisation, changes nothing. Throws `unsupported_token_type` for an API key, `forbidden` for callers
   * who may not end this token, and 503 while the state of the token is unknown.
   */
  async revoke(caller: BearerPrincipal, token: string): Promise<void> {
    const { tokens, revokedTokens, looksLikeKey } = this.#deps
    if (looksLikeKey(token)) throw fail('unsupported_token_type')
    if (caller.kind === 'key' && caller.scope !== 'full')
      throw fail('forbidden', { message: 'Only an API key of scope full, or the token itself, ends a token.' })
    const claims = await tokens.read(token)
    if (caller.kind === 'agent' && claims?.jti !== caller.tokenIds[0])
      throw fail('forbidden', { message: 'An agent token ends nothing but itself. Use an API key of scope full.' })
    if (claims === null || claims.org !== caller.orgId) return
    await revokedTokens.revoke(claims.org, claims.jti)
  }
}

/** Returns the result of `ask`, or null when `ask` refuses the token. Throws failures of the gateway itself. */
async function orNull<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof GatewayError && (error.status === 401 || error.errorName === 'agent_paused')) return null
    throw error
  }
}

/** Returns the smallest amount that is left in these budgets. Returns null when none of them has a cap. */
function leastLeft(budgets: readonly BudgetStatus[]): bigint | null {
  let least: bigint | null = null
  for (const { capUinr, spentUinr, heldUinr, inDoubtUinr } of budgets) {
    if (capUinr === null) continue
    const left = capUinr - spentUinr - heldUinr - inDoubtUinr
    if (least === null || left < least) least = left
  }
  return least === null || least > 0n ? least : 0n
}
