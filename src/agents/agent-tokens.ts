import { errors, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { KeyRecord, Keys } from '../gateway/keys/keys.ts'
import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db.ts'
import { fail } from '../platform/errors.ts'
import type { Ids } from '../platform/ids.ts'
import type { AgentPrincipal, BearerPrincipal, CallPolicy, Principal } from '../platform/principal.ts'
import { hashKey } from '../platform/secrets.ts'
import type { KillSwitch } from './kill-switch.ts'
import { findWithAncestors } from './queries.ts'
import { type SigningKeys, tokenAlgorithm } from './signing-keys.ts'
import { refused } from './token-refusal.ts'

export interface AgentTokensDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: Keys
  readonly signingKeys: SigningKeys
  readonly killSwitch: KillSwitch
  /** What is ruled for the agent's calls; null: there is no such agent. Synchronous when cached. */
  policiesOf(agentId: number): readonly CallPolicy[] | null | Promise<readonly CallPolicy[] | null>
  /** Public base URL without a trailing slash; asked at each use, because a free port is known only after listening. */
  readonly baseUrl: () => string
  /** AGENT_TOKEN_TTL_S. */
  readonly ttlSeconds: number
}

/** What the token endpoint answers. `token` repeats `access_token`. */
export interface MintedToken {
  readonly access_token: string
  readonly token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly expires_at: string
  readonly agent_id: number
  readonly scope: string
}

const claimsShape = z.object({
  org: z.int(),
  uid: z.int().nullable(),
  key_id: z.int(),
  agent: z.object({ id: z.int(), name: z.string(), epoch: z.int(), ancestors: z.array(z.int()).max(3).default([]) }),
  sub: z.string(),
  jti: z.string(),
  exp: z.int(),
})
/** The claims of a token whose signature, issuer, audience, type and times were right. */
export type AgentClaims = z.output<typeof claimsShape>

const tokenType = 'at+jwt'
const tokenScope = 'inference'
/** Clocks of two replicas may differ by this much when a token is used right after its mint. Expiry gets no such grace. */
const skewSeconds = 30
/** Verified tokens kept: a signature check costs a tenth of a millisecond, so it is made once per token. */
const verifiedMax = 20_000
/** Longer texts are no tokens of ours. */
const tokenLengthMax = 8_192

/** Short-lived tokens of agents (RFC 9068): minted with a full API key, verified offline, held against the kill switch at every call. */
export class AgentTokens {
  readonly #deps: AgentTokensDeps
  readonly #verified = new LRUCache<string, AgentClaims>({ max: verifiedMax })

  constructor(deps: AgentTokensDeps) {
    this.#deps = deps
  }

  /** Mints a token for an agent of the caller's org. Throws `not_found`, `agent_revoked` (409) and `forbidden` for callers without an API key of scope full. */
  async mint(principal: Principal, agentId: number): Promise<MintedToken> {
    if (principal.kind !== 'key' || principal.scope !== 'full') throw fail('forbidden', { message: 'Only an API key of scope full mints agent tokens.' })
    const { db, clock, ids, signingKeys, baseUrl, ttlSeconds } = this.#deps
    const agent = await db.maybe(findWithAncestors, principal.orgId, agentId)
    if (agent === null) throw fail('not_found', { message: 'There is no such agent.' })
    if (agent.status === 'revoked') throw fail('agent_revoked')
    const { kid, key } = await signingKeys.current()
    const issuedAt = Math.floor(clock.nowMs() / 1000)
    const expiresAt = issuedAt + ttlSeconds
    const subject = `agent:${agent.id}`
    const token = await new SignJWT({
      client_id: subject,
      org: principal.orgId,
      uid: principal.userId,
      key_id: principal.keyId,
      scope: tokenScope,
      agent: { id: agent.id, name: agent.name, epoch: agent.epoch, ...(agent.ancestorIds.length === 0 ? {} : { ancestors: agent.ancestorIds }) },
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
    return {
      access_token: token,
      token,
      token_type: 'Bearer',
      expires_in: ttlSeconds,
      expires_at: new Date(expiresAt * 1000).toISOString(),
      agent_id: agent.id,
      scope: tokenScope,
    }
  }

  /** Who the token speaks for, now. Throws 401 with a `reason`, or 503 when the news are stale. Synchronous when the token was seen before and its key and agent are cached. */
  principalOf(token: string): AgentPrincipal | Promise<AgentPrincipal> {
    const claims = this.verify(token)
    return claims instanceof Promise ? claims.then(checked => this.#admit(checked)) : this.#admit(claims)
  }

  /** The claims of a genuine, unexpired token. Says nothing of whether agent and key are still alive: `principalOf` does. */
  verify(token: string): AgentClaims | Promise<AgentClaims> {
    if (token.length > tokenLengthMax) throw refused('token_invalid')
    const cacheKey = hashKey(token).toString('base64')
    const seen = this.#verified.get(cacheKey)
    return seen === undefined ? this.#verifyNew(token, cacheKey) : this.#unexpired(seen)
  }

  /** Throws when the caller's agent or key was ended since it was let in. Asked again just before each dial. */
  recheck(principal: BearerPrincipal): void {
    if (principal.kind === 'agent') this.#deps.killSwitch.check(principal.agentId, principal.epoch, principal.ancestorIds)
    const key = this.#deps.keys.byId(principal.keyId)
    if (key instanceof Promise) {
      // The answer comes too late for this look, so it cuts what went on without it. That it may fail is for the next call to report.
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
      const claims = claimsShape.safeParse(payload)
      if (!claims.success || claims.data.sub !== `agent:${claims.data.agent.id}`) throw refused('token_invalid')
      this.#unexpired(claims.data)
      this.#verified.set(cacheKey, claims.data)
      return claims.data
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw refused('token_expired', error)
      if (error instanceof errors.JOSEError) throw refused('token_invalid', error)
      throw error
    }
  }

  #unexpired(claims: AgentClaims): AgentClaims {
    if (claims.exp * 1000 <= this.#deps.clock.nowMs()) throw refused('token_expired')
    return claims
  }

  #admit(claims: AgentClaims): AgentPrincipal | Promise<AgentPrincipal> {
    const key = this.#deps.keys.byId(claims.key_id)
    const policies = this.#deps.policiesOf(claims.agent.id)
    if (!(key instanceof Promise) && !(policies instanceof Promise)) return this.#principal(claims, key, policies)
    return Promise.all([key, policies]).then(([foundKey, foundPolicies]) => this.#principal(claims, foundKey, foundPolicies))
  }

  #principal(claims: AgentClaims, key: KeyRecord | null, policies: readonly CallPolicy[] | null): AgentPrincipal {
    const { agent } = claims
    this.#deps.killSwitch.check(agent.id, agent.epoch, agent.ancestors)
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
      keyId: key.id,
      keyName: key.name,
      scope: 'inference',
      workspaceId: key.workspaceId,
      limits: key.limits,
      capabilities: key.capabilities,
      policies: bothOf(key.policies, policies),
      expiresAtMs: claims.exp * 1000,
    }
  }
}

/** The rules of the key and of the agent. Callers without rules share the arrays that are cached. */
function bothOf(ofKey: readonly CallPolicy[], ofAgent: readonly CallPolicy[]): readonly CallPolicy[] {
  if (ofAgent.length === 0) return ofKey
  return ofKey.length === 0 ? ofAgent : [...ofKey, ...ofAgent]
}
