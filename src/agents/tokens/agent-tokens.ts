import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { KeyRecord, Keys } from '../../gateway/keys/keys.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { type AgentPrincipal, type AgentScope, agentScopes, type BearerPrincipal, type CallPolicy, type Principal } from '../../platform/security/principal.ts'
import { hashKey } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { checkActing } from '../authority.ts'
import type { KillSwitch } from '../kill-switch.ts'
import type { Pauses } from '../pauses.ts'
import { type AgentWithAncestors, findWithAncestors } from '../queries.ts'
import { bindingKey } from './binding-key.ts'
import type { RevokedTokens } from './revoked-tokens.ts'
import { type SigningKeys, tokenAlgorithm } from './signing-keys.ts'
import { type Act, type AgentClaims, actOf, claimsShape } from './token-claims.ts'
import { noAgent, refused } from './token-refusal.ts'
import { narrowedScopes, scopedTokenVersion } from './token-scopes.ts'

export interface AgentTokensDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: Keys
  readonly signingKeys: SigningKeys
  readonly killSwitch: KillSwitch
  readonly revokedTokens: Pick<RevokedTokens, 'check'>
  readonly pauses: Pick<Pauses, 'check'>
  /**
   * Returns the rules of the agent's calls: its own rules and those of all agents above it. Returns null when one of these agents does not exist. The
   * result is synchronous when the rules are cached.
   */
  policiesOf(agentId: number, ancestorIds: readonly number[]): readonly CallPolicy[] | null | Promise<readonly CallPolicy[] | null>
  /** Public base URL without a trailing slash. It is a function because a port that the system chooses is known only after listening. */
  readonly baseUrl: () => string
  /** The setting AGENT_TOKEN_TTL_S. */
  readonly ttlSeconds: number
}

/** The requested scopes and life of a token. Neither can exceed what the caller may give. */
export interface TokenParams {
  /** Scopes with spaces between them. When it is left out, the token gets all scopes that may be given. */
  readonly scope?: string | undefined
  /** Life in seconds. The maximum and the default are AGENT_TOKEN_TTL_S. */
  readonly ttlSeconds?: number | undefined
}

/** The request of a person or a key for a token of an agent. */
export interface MintParams extends TokenParams {
  /** The key that binds the token. A key as the caller binds with itself. A signed-in person names one. */
  readonly keyId?: number | undefined
  /** The run of the token's calls. */
  readonly runId?: string | undefined
}

/** The parts of a token. The caller checks who may mint it. */
export interface TokenGrant {
  readonly agent: Pick<AgentWithAncestors, 'id' | 'name' | 'epoch' | 'ancestorIds'>
  readonly orgId: number
  /** The user of the key. */
  readonly userId: number | null
  /** The key whose limits bind the token. The token ends with this key. */
  readonly keyId: number
  readonly scopes: readonly AgentScope[]
  readonly ttlSeconds: number
  /** The actors that let the agent act, outermost first. The default is the agents above it. */
  readonly act?: Act
  /** The ids of the tokens that this token was made from. The revocation of one of them ends this token too. */
  readonly via?: readonly string[]
  /** The run of the token's calls. A token that is made from another one inherits its run. */
  readonly runId?: string | undefined
}

/** The answer of the token endpoint. `token` repeats `access_token`. */
export interface MintedToken {
  readonly access_token: string
  readonly token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly expires_at: string
  readonly agent_id: number
  readonly scope: string
}

const tokenType = 'at+jwt'
/** Maximum difference between the clocks of two processes when a token is used right after its mint. The check of the expiry allows no difference. */
const skewSeconds = 30
/** Maximum number of verified tokens in the cache. A signature check costs a tenth of a millisecond, so each token is verified once. */
const verifiedMax = 20_000
/** Maximum length of a token of the gateway. A longer text is refused. */
const tokenLengthMax = 8_192

/**
 * Mints and checks the short-lived tokens of agents (RFC 9068). A full API key mints them. The gateway verifies a token without the database. The
 * kill switch checks the token at every call.
 */
export class AgentTokens {
  readonly #deps: AgentTokensDeps
  readonly #verified = new LRUCache<string, AgentClaims>({ max: verifiedMax })

  constructor(deps: AgentTokensDeps) {
    this.#deps = deps
  }

  /**
   * Mints a token for an agent of the caller's org. The key of the token is the caller, or the key that a signed-in person names. Throws `not_found`,
   * `agent_revoked` (409) and `bad_request` for an invalid request. Throws `forbidden` for a playground agent, for the agent of another member at the
   * console, and for callers without an API key of scope full.
   */
  async mint(principal: Principal, agentId: number, params: MintParams = {}): Promise<MintedToken> {
    const scopes = narrowedScopes(params.scope, agentScopes)
    const ttlSeconds = this.lifeOf(params.ttlSeconds)
    const agent = await this.agentToBind(principal.orgId, agentId)
    checkActing(principal, agent)
    const { userId, keyId } = await bindingKey(this.#deps.keys, principal, params.keyId)
    return this.issue({ agent, orgId: principal.orgId, userId, keyId, scopes, ttlSeconds, runId: params.runId })
  }

  /**
   * Returns the life of a token in seconds. The inputs are the requested life and the longest life that may be given. Throws `bad_request` when the
   * requested life is above AGENT_TOKEN_TTL_S, and `forbidden` when it is above the life of the requesting token.
   */
  lifeOf(requestedSeconds: number | undefined, givenSeconds = this.#deps.ttlSeconds): number {
    const { ttlSeconds } = this.#deps
    if (requestedSeconds !== undefined && requestedSeconds > ttlSeconds)
      throw fail('bad_request', { message: `ttl_s: at most ${ttlSeconds} here. Mint again before the token ends.` })
    if (requestedSeconds !== undefined && requestedSeconds > givenSeconds)
      throw fail('forbidden', { message: `ttl_s: this token was given ${givenSeconds} seconds and cannot pass on more.` })
    return Math.min(requestedSeconds ?? ttlSeconds, givenSeconds)
  }

  /** Returns an active agent of the organisation. Throws `not_found` and `agent_revoked` (409). */
  async agentToMint(orgId: number, agentId: number): Promise<AgentWithAncestors> {
    const agent = await this.#deps.db.maybe(findWithAncestors, orgId, agentId)
    if (agent === null) throw noAgent()
    if (agent.status === 'revoked') throw fail('agent_revoked')
    return agent
  }

  /** Returns an active agent that callers and trust rules may act as. Throws `not_found`, `agent_revoked` (409), and `forbidden` for a playground agent. */
  async agentToBind(orgId: number, agentId: number): Promise<AgentWithAncestors> {
    const agent = await this.agentToMint(orgId, agentId)
    if (agent.playgroundUser === null) return agent
    throw fail('forbidden', { message: 'Only its person gets tokens of a playground agent: POST /me/playground/token.' })
  }

  /** Signs a token. Throws `bad_request` for a token that would be too long to be accepted. */
  async issue({ agent, orgId, userId, keyId, scopes, ttlSeconds, act, via = [], runId }: TokenGrant): Promise<MintedToken> {
    const { clock, ids, signingKeys, baseUrl } = this.#deps
    const { kid, key } = await signingKeys.current()
    const issuedAt = Math.floor(clock.nowMs() / 1000)
    const expiresAt = issuedAt + ttlSeconds
    const subject = `agent:${agent.id}`
    const scope = scopes.join(' ')
    const token = await new SignJWT({
      client_id: subject,
      org: orgId,
      uid: userId,
      key_id: keyId,
      ver: scopedTokenVersion,
      scope,
      agent: { id: agent.id, name: agent.name, epoch: agent.epoch, ...(agent.ancestorIds.length === 0 ? {} : { ancestors: agent.ancestorIds }) },
      ...(act === undefined ? actOf(agent.ancestorIds) : { act }),
      ...(via.length === 0 ? {} : { via }),
      ...(runId === undefined ? {} : { run: runId }),
    })
      .setProtectedHeader({ alg: tokenAlgorithm, typ: tokenType, kid })
      .setIssuer(baseUrl())
      .setAudience([baseUrl(), `${baseUrl()}/mcp`])
      .setSubject(subject)
      .setJti(ids.uuidv7(clock.nowMs()))
      .setIssuedAt(issuedAt)
      .setNotBefore(issuedAt)
      .setExpirationTime(expiresAt)
      .sign(key)
    if (token.length > tokenLengthMax) throw fail('bad_request', { message: 'The names of the subject and of its actors are too long for a token.' })
    return {
      access_token: token,
      token,
      token_type: 'Bearer',
      expires_in: ttlSeconds,
      expires_at: new Date(expiresAt * 1000).toISOString(),
      agent_id: agent.id,
      scope,
    }
  }

  /**
   * Returns the principal of a token that is valid now. Throws 401 with a `reason`, or 503 when the control log was last read too long ago. The
   * result is synchronous when the token was seen before and its key and agent are cached.
   */
  principalOf(token: string): AgentPrincipal | Promise<AgentPrincipal> {
    const claims = this.verify(token)
    return claims instanceof Promise ? claims.then(checked => this.#admit(checked)) : this.#admit(claims)
  }

  /** Returns the claims of a genuine, unexpired token. It does not check whether the agent and key are still active. `principalOf` checks that. */
  verify(token: string): AgentClaims | Promise<AgentClaims> {
    if (token.length > tokenLengthMax) throw refused('token_invalid')
    const cacheKey = hashKey(token).toString('base64')
    const seen = this.#verified.get(cacheKey)
    return seen === undefined ? this.#verifyNew(token, cacheKey) : this.#unexpired(seen)
  }

  /** Returns the claims of a genuine token, expired or not. Returns null for every other text. */
  async read(token: string): Promise<AgentClaims | null> {
    try {
      return token.length > tokenLengthMax ? null : await this.#genuine(token)
    } catch (error) {
      if (error instanceof GatewayError && error.status === 401) return null
      throw error
    }
  }

  /**
   * Throws when the caller's agent or key was ended after its admission, or when the agent is paused. It runs again just before each attempt dials
   * its provider.
   */
  recheck(principal: BearerPrincipal): void {
    if (principal.kind === 'agent') {
      this.#deps.killSwitch.check(principal.agentId, principal.epoch, principal.ancestorIds)
      this.#deps.revokedTokens.check(principal.tokenIds)
      this.#deps.pauses.check(principal.agentId, principal.ancestorIds)
    }
    const key = this.#deps.keys.byId(principal.keyId)
    if (key instanceof Promise) {
      // The call continues before this look-up ends. If the key turns out to be revoked, the call is cut. If the look-up fails, the next call reports
      // the failure.
      key.then(
        found => (found === null || found.state === 'revoked') && this.#deps.killSwitch.cutKey(principal.keyId),
        () => undefined,
      )
      return
    }
    if (key !== null && key.state === 'active') return
    throw principal.kind === 'agent' ? refused('key_revoked') : fail('invalid_api_key', { message: 'This API key has been revoked or disabled.' })
  }

  async #verifyNew(token: string, cacheKey: string): Promise<AgentClaims> {
    const claims = this.#unexpired(await this.#genuine(token))
    this.#verified.set(cacheKey, claims)
    return claims
  }

  /** Makes every check except expiry. Throws 401 `token_invalid`. */
  async #genuine(token: string): Promise<AgentClaims> {
    const claims = claimsShape.safeParse(await this.#payloadOf(token))
    if (!claims.success || claims.data.sub !== `agent:${claims.data.agent.id}`) throw refused('token_invalid')
    const { exp, iat } = claims.data
    // No token outlives the present setting. Revocations and signing keys are kept for exactly that long.
    return { ...claims.data, exp: Math.min(exp, iat + this.#deps.ttlSeconds) }
  }

  async #payloadOf(token: string): Promise<JWTPayload> {
    const { clock, signingKeys, baseUrl } = this.#deps
    try {
      const { payload } = await jwtVerify(
        token,
        async header => {
          const key = typeof header.kid === 'string' ? await signingKeys.verifying(header.kid) : null
          if (key === null) throw refused('token_invalid')
          return key
        },
        {
          algorithms: [tokenAlgorithm],
          typ: tokenType,
          issuer: baseUrl(),
          audience: baseUrl(),
          clockTolerance: skewSeconds,
          currentDate: new Date(clock.nowMs()),
          requiredClaims: ['exp', 'nbf', 'iat', 'sub'],
        },
      )
      return payload
    } catch (error) {
      // Expiry is checked last, so the token has passed all other checks here.
      if (error instanceof errors.JWTExpired) return error.payload
      if (error instanceof errors.JOSEError) throw refused('token_invalid', error)
      throw error
    }
  }

  #unexpired(claims: AgentClaims): AgentClaims {
    if (claims.exp * 1000 <= this.#deps.clock.nowMs()) throw refused('token_expired')
    return claims
  }

  #admit(claims: AgentClaims): AgentPrincipal | Promise<AgentPrincipal> {
    const tokenIds = claims.via.length === 0 ? [claims.jti] : [claims.jti, ...claims.via]
    // The rules of a revoked agent are not loaded, so that they take no place in the cache.
    this.#checkEnd(claims, tokenIds)
    const key = this.#deps.keys.byId(claims.key_id)
    const policies = this.#deps.policiesOf(claims.agent.id, claims.agent.ancestors)
    if (!(key instanceof Promise) && !(policies instanceof Promise)) return this.#principal(claims, tokenIds, key, policies)
    return Promise.all([key, policies]).then(([foundKey, foundPolicies]) => {
      this.#checkEnd(claims, tokenIds)
      return this.#principal(claims, tokenIds, foundKey, foundPolicies)
    })
  }

  /** Throws when the agent or the token was revoked. */
  #checkEnd({ agent }: AgentClaims, tokenIds: readonly string[]): void {
    this.#deps.killSwitch.check(agent.id, agent.epoch, agent.ancestors)
    this.#deps.revokedTokens.check(tokenIds)
  }

  #principal(claims: AgentClaims, tokenIds: readonly string[], key: KeyRecord | null, policies: readonly CallPolicy[] | null): AgentPrincipal {
    const { agent } = claims
    if (key === null || key.orgId !== claims.org || key.state !== 'active') throw refused('key_revoked')
    if (policies === null) throw refused('token_invalid')
    this.#deps.keys.touch(key)
    return {
      kind: 'agent',
      orgId: key.orgId,
      userId: key.userId,
      role: key.role,
      agentId: agent.id,
      agentName: agent.name,
      ancestorIds: agent.ancestors,
      epoch: agent.epoch,
      tokenIds,
      keyId: key.id,
      keyName: key.name,
      scopes: claims.scopes,
      workspaceId: key.workspaceId,
      limits: key.limits,
      isTrial: key.isTrial,
      capabilities: key.capabilities,
      policies: bothOf(key.policies, policies),
      expiresAtMs: claims.exp * 1000,
      lifeSeconds: claims.exp - claims.iat,
      ...(claims.run === undefined ? {} : { runId: claims.run }),
    }
  }
}

/** Returns the rules of the key and of the agent. When one of the two lists is empty, the other cached list is returned without a copy. */
function bothOf(ofKey: readonly CallPolicy[], ofAgent: readonly CallPolicy[]): readonly CallPolicy[] {
  if (ofAgent.length === 0) return ofKey
  return ofKey.length === 0 ? ofAgent : [...ofKey, ...ofAgent]
}
