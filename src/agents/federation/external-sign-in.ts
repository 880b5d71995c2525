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

/** The single scope that a client requests from the issuer. */
const resourceScope = 'mcp'

/** Maximum number of cached grants. Above this number, the grants that were used least recently are dropped, and their tokens are exchanged again. */
const rememberedMax = 10_000
/** A token of the gateway is renewed this long before it expires, so that it does not expire right after a call begins. */
const renewBeforeMs = 60_000

/**
 * Signs in callers with tokens of another issuer, as an OAuth resource server does. The trust rules of the organisation decide which agent a token
 * acts as. Each external token is exchanged for a token of the gateway. The kill switch, rules, budgets and the end of the trust rule therefore bind
 * every call.
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

  /** Returns the URL of the organisation's protected resource. Tokens for the organisation must have this URL as their audience. */
  resourceOf(orgId: number): string {
    return `${this.#deps.baseUrl()}/orgs/${orgId}/mcp`
  }

  /** Returns whether the token claims this issuer. The claim is not verified here. */
  isOfIssuer(token: string): boolean {
    try {
      return readUnverified(token).issuer === this.#deps.issuer
    } catch {
      return false
    }
  }

  /**
   * Returns the agent that this token acts as in the organisation. Throws `invalid_api_key` for a refused token, and `forbidden` for a token without
   * a scope of this gateway. Also throws `issuer_unavailable`, `rate_limit_exceeded` and `database_unavailable`.
   */
  async principalOf(token: string, orgId: number, call: ExchangeCall): Promise<AgentPrincipal> {
    const name = createHash('sha256').update(`${orgId} ${token}`).digest('base64url')
    const grant = await this.#grant(name, token, orgId, call, null)
    try {
      return await this.#deps.tokens.principalOf(grant.minted.access_token)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 401) throw error
      // The rule, agent or key of the grant has ended. The rules are checked again, because another rule may accept the token. Otherwise the new
      // error says why the token is refused.
      const renewed = await this.#grant(name, token, orgId, call, grant)
      return this.#deps.tokens.principalOf(renewed.minted.access_token)
    }
  }

  /** Returns the grant of the token. The grant `ended` is not returned again. */
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
 * Returns the scopes that an external token gets at this gateway. A token with the scope `mcp` gets all scopes of its rule. A token with scope names
 * of the gateway gets only those of them that the rule gives. Throws `forbidden` when no scope is left.
 */
function scopesFor(claims: Readonly<Record<string, unknown>>, given: readonly AgentScope[]): readonly AgentScope[] {
  const words = [claims['scope'], claims['scp']].flat().flatMap(each => (typeof each === 'string' ? each.split(' ') : []))
  const scopes = words.includes(resourceScope) ? given : given.filter(scope => words.includes(scope))
  if (scopes.length > 0) return scopes
  throw fail('forbidden', {
    message: `This token has no scope of use here. Sign in with the scope ${resourceScope}, or with some of ${agentScopes.join(', ')}.`,
  })
}
