import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { type AgentPrincipal, type AgentScope, agentScopes } from '../../platform/security/principal.ts'
import type { AgentTokens } from '../tokens/agent-tokens.ts'
import type { ExchangeCall, ResourceGrant, TokenExchange } from './oauth-exchange.ts'
import { readUnverified } from './oauth-subject.ts'

export interface ExternalSignInDeps {
  /** The issuer whose tokens are accepted (setting MCP_OAUTH_ISSUER). */
  readonly issuer: string
  readonly clock: Clock
  readonly exchange: Pick<TokenExchange, 'forResource'>
  readonly tokens: Pick<AgentTokens, 'principalOf'>
  readonly baseUrl: () => string
}

/** The one scope that a client requests from the issuer. */
const resourceScope = 'mcp'

/** The most cached tokens; beyond it the least recently used ones are exchanged again. */
const rememberedMax = 10_000
/** A token of ours is renewed this long before its end, so that it does not end right after a call begins. */
const renewBeforeMs = 60_000

/**
 * Signs in callers with tokens of another issuer, as an OAuth resource server does: the trust rules of the organisation say which agent a token acts as.
 * Each such token is backed by a token of ours, so kill switch, rules, budgets and the end of the trust rule bind every call.
 */
export class ExternalSignIn {
  readonly scope = resourceScope
  readonly #deps: ExternalSignInDeps
  readonly #granted = new LRUCache<string, Promise<ResourceGrant>>({ max: rememberedMax })

  constructor(deps: ExternalSignInDeps) {
    this.#deps = deps
  }

  get issuer(): string {
    return this.#deps.issuer
  }

  /** The URL of the organisation's protected resource, which is also the audience that its tokens must name. */
  resourceOf(orgId: number): string {
    return `${this.#deps.baseUrl()}/orgs/${orgId}/mcp`
  }

  /** Whether the token claims this issuer; the claim is not verified yet. */
  isOfIssuer(token: string): boolean {
    try {
      return readUnverified(token).issuer === this.#deps.issuer
    } catch {
      return false
    }
  }

  /**
   * The agent that this token acts as in the organisation. Throws `invalid_api_key` for what is not taken, `forbidden` for a token without a
   * scope of use here, `issuer_unavailable`, `rate_limit_exceeded` and `database_unavailable`.
   */
  async principalOf(token: string, orgId: number, call: ExchangeCall): Promise<AgentPrincipal> {
    const name = createHash('sha256').update(`${orgId} ${token}`).digest('base64url')
    const grant = await this.#grant(name, token, orgId, call, null)
    try {
      return await this.#deps.tokens.principalOf(grant.minted.access_token)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 401) throw error
      // Its rule, agent or key has ended. The rules are checked again, because another rule may accept the token; if none does, they say why.
      const renewed = await this.#grant(name, token, orgId, call, grant)
      return this.#deps.tokens.principalOf(renewed.minted.access_token)
    }
  }

  /** What the token was granted; a grant that has `ended` counts no more. */
  async #grant(name: string, token: string, orgId: number, call: ExchangeCall, ended: ResourceGrant | null): Promise<ResourceGrant> {
    const nowMs = this.#deps.clock.nowMs()
    const current = this.#granted.get(name)
    const known = await current
    if (known && known !== ended && known.subjectEndsAtMs > nowMs && Date.parse(known.minted.expires_at) - renewBeforeMs > nowMs) return known
    if (this.#granted.get(name) === current) this.#granted.delete(name)
    const asking = this.#granted.get(name) ?? this.#ask(token, orgId, call)
    this.#granted.set(name, asking)
    try {
      return await asking
    } catch (error) {
      if (this.#granted.get(name) === asking) this.#granted.delete(name)
      throw error
    }
  }

  async #ask(token: string, orgId: number, call: ExchangeCall): Promise<ResourceGrant> {
    try {
      return await this.#deps.exchange.forResource(token, { issuer: this.#deps.issuer, audience: this.resourceOf(orgId) }, scopesFor, call)
    } catch (error) {
      if (error instanceof GatewayError && error.errorName === 'bad_request')
        throw fail('invalid_api_key', { message: error.message.replace('subject_token', 'The token'), cause: error })
      throw error
    }
  }
}

/**
 * Returns the scopes of a token here: with the scope `mcp` all that its rule gives, with scope names of the gateway only those. Throws `forbidden` when
 * nothing is left.
 */
function scopesFor(claims: Readonly<Record<string, unknown>>, given: readonly AgentScope[]): readonly AgentScope[] {
  const words = [claims['scope'], claims['scp']].flat().flatMap(each => (typeof each === 'string' ? each.split(' ') : []))
  const scopes = words.includes(resourceScope) ? given : given.filter(scope => words.includes(scope))
  if (scopes.length > 0) return scopes
  throw fail('forbidden', {
    message: `This token has no scope of use here. Sign in with the scope ${resourceScope}, or with some of ${agentScopes.join(', ')}.`,
  })
}
