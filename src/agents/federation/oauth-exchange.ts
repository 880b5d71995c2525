import { decodeJwt, type JWTPayload } from 'jose'
import { z } from 'zod'
import type { KeyRecord, Keys } from '../../gateway/keys/keys.ts'
import type { Clock } from '../../platform/clock.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { AgentPrincipal, AgentScope } from '../../platform/security/principal.ts'
import type { AgentTokens, MintedToken } from '../tokens/agent-tokens.ts'
import { type Act, actOf, viaOf } from '../tokens/token-claims.ts'
import { narrowedScopes } from '../tokens/token-scopes.ts'
import type { ExchangeForm } from './oauth-forms.ts'
import type { IssuerKeys } from './oauth-issuer-keys.ts'
import { notTaken, placeOf, readUnverified, verifySubject } from './oauth-subject.ts'
import { type TrustRules, trustTokenId } from './trust.ts'
import type { MatchingTrustRow, TrustRow } from './trust-queries.ts'

/** The facts for the audit trail about one exchange: a token of another issuer was exchanged for an agent token. */
export interface ExchangeLine {
  readonly agent: AgentPrincipal
  readonly ruleId: number
  readonly sourceIp: string | null
  readonly requestId: string
}

export interface ExchangeDeps {
  readonly clock: Clock
  readonly tokens: AgentTokens
  readonly keys: Pick<Keys, 'byId'>
  readonly trust: Pick<TrustRules, 'matching' | 'pastedKeysOf'>
  readonly issuerKeys: IssuerKeys
  readonly baseUrl: () => string
  /** Counts an exchange as a call of its key. Throws `rate_limit_exceeded`. */
  takeRate(principal: AgentPrincipal): void | Promise<void>
  /** Writes the audit line. When the write fails, it throws and no token is issued. */
  record(line: ExchangeLine): Promise<void>
}

/** The origin of an exchange. */
export interface ExchangeCall {
  readonly sourceIp: string | null
  readonly requestId: string
}

/** The grant for a token of another issuer at the resource of an organisation. */
export interface ResourceGrant {
  readonly minted: MintedToken
  /** The expiry of the incoming token, in Unix milliseconds. */
  readonly subjectEndsAtMs: number
}

/** Returns the scopes of the new token: those scopes of the rule that the claims of the incoming token allow. */
type ScopesOf = (claims: JWTPayload, given: readonly AgentScope[]) => readonly AgentScope[]

type Subject = JWTPayload & { readonly sub: string }

const actDepthMax = 3
/**
 * Maximum number of places of keys that one exchange tries. Each place costs one signature check, and the author of the rules can name any number of
 * places.
 */
const placesTriedMax = 4

/**
 * Exchanges tokens (RFC 8693). A token of another issuer becomes a token of the agent that a trust rule names. A token of the gateway becomes a token
 * with fewer rights. The issued token has at most the scopes of the rule, or of the incoming token of the gateway. A token that is made from a token
 * of the gateway never outlives it.
 */
export class TokenExchange {
  readonly #deps: ExchangeDeps

  constructor(deps: ExchangeDeps) {
    this.#deps = deps
  }

  /** Returns the issued token. Throws `bad_request`, `invalid_scope`, `issuer_unavailable`, `rate_limit_exceeded` and `database_unavailable`. */
  async exchange(form: ExchangeForm, call: ExchangeCall): Promise<MintedToken> {
    const said = readUnverified(form.subject_token)
    if (said.issuer === this.#deps.baseUrl()) return this.#narrow(form)
    const scopesOf: ScopesOf = (_claims, given) => narrowed(form.scope, given)
    return (await this.#ofIssuer(form, said, scopesOf, call)).minted
  }

  /** Returns the grant that the trust rules give to a token of this issuer and this audience. Throws the errors of `exchange` and of `scopesOf`. */
  async forResource(token: string, resource: { readonly issuer: string; readonly audience: string }, scopesOf: ScopesOf, call: ExchangeCall) {
    const said = readUnverified(token)
    if (said.issuer !== resource.issuer) throw notTaken(`its issuer is not ${resource.issuer}`)
    if (!said.audiences.includes(resource.audience)) throw notTaken(`it was made for another audience than ${resource.audience}`)
    return this.#ofIssuer({ subject_token: token, agent_id: undefined }, { issuer: said.issuer, audiences: [resource.audience] }, scopesOf, call)
  }

  /**
   * Exchanges a token of the gateway for a token with fewer rights. The new token belongs to the same agent and key. It ends when the incoming token
   * ends.
   */
  async #narrow(form: ExchangeForm): Promise<MintedToken> {
    const { clock, tokens, takeRate } = this.#deps
    const { principal, claims } = await this.#ours(form.subject_token)
    if (form.agent_id !== undefined && form.agent_id !== principal.agentId)
      throw fail('bad_request', { message: 'agent_id: this token is one of another agent.' })
    await takeRate(principal)
    const agent = { id: principal.agentId, name: principal.agentName, epoch: principal.epoch, ancestorIds: principal.ancestorIds }
    return tokens.issue({
      agent,
      orgId: principal.orgId,
      userId: claims.uid,
      keyId: principal.keyId,
      scopes: narrowed(form.scope, principal.scopes),
      ttlSeconds: claims.exp - Math.floor(clock.nowMs() / 1000),
      via: viaOf(principal),
      runId: principal.runId,
      ...(claims.act === undefined ? {} : { act: claims.act }),
    })
  }

  async #ours(token: string) {
    const { tokens } = this.#deps
    try {
      return { principal: await tokens.principalOf(token), claims: await tokens.verify(token) }
    } catch (error) {
      if (error instanceof GatewayError && error.status === 401) throw fail('bad_request', { message: error.message, cause: error })
      throw error
    }
  }

  async #ofIssuer(
    form: Pick<ExchangeForm, 'subject_token' | 'agent_id'>,
    { issuer, audiences }: ReturnType<typeof readUnverified>,
    scopesOf: ScopesOf,
    call: ExchangeCall,
  ): Promise<ResourceGrant> {
    const { tokens, takeRate, record } = this.#deps
    const rules = await this.#deps.trust.matching(issuer, audiences)
    if (rules.length === 0) throw notTaken('no trust rule takes tokens of its issuer for its audience. An owner makes one with POST /me/agent-trust')
    const { rule, subject } = await this.#choose(form, rules)
    const key = await this.#keyOf(rule)
    const agent = await this.#agentOf(rule)
    const lifeSeconds = tokens.lifeOf(undefined)
    const minted = await tokens.issue({
      agent,
      orgId: rule.orgId,
      userId: key.userId,
      keyId: key.id,
      scopes: scopesOf(subject, rule.scopes),
      ttlSeconds: Math.min(rule.ttlSeconds ?? lifeSeconds, lifeSeconds),
      act: { iss: issuer, sub: subject.sub, ...innerActOf(subject, agent.ancestorIds) },
      via: [trustTokenId(rule.id)],
    })
    const principal = await this.#admitted(minted.access_token)
    await takeRate(principal)
    await record({ agent: principal, ruleId: rule.id, ...call })
    return { minted, subjectEndsAtMs: (subject.exp ?? 0) * 1000 }
  }

  /**
   * Returns the principal of the new token. When the rule, key or agent of the token has ended meanwhile, the error does not say that the caller's
   * credential is wrong.
   */
  async #admitted(token: string): Promise<AgentPrincipal> {
    try {
      return await this.#deps.tokens.principalOf(token)
    } catch (error) {
      if (error instanceof GatewayError && error.status === 401) throw notTaken('its trust rule, or the key or agent of it, has just ended', error)
      throw error
    }
  }

  /**
   * Returns the oldest rule whose conditions hold. When rules for different agents hold, the request must choose one with `agent_id`. `agent_id` is
   * always necessary for an audience that belonged to another organisation before. Decision 0464 says why.
   */
  async #choose(
    { subject_token: token, agent_id: agentId }: Pick<ExchangeForm, 'subject_token' | 'agent_id'>,
    rules: readonly MatchingTrustRow[],
  ): Promise<{ rule: MatchingTrustRow; subject: Subject }> {
    const verified = new Map<string, Promise<Subject>>()
    const held: { rule: MatchingTrustRow; subject: Subject }[] = []
    let refusal: unknown = null
    let isCutOff = false
    for (const rule of possibleRules(token, rules)) {
      const place = `${placeOf(rule)} ${rule.audience}`
      if (!verified.has(place) && verified.size >= placesTriedMax) {
        isCutOff = true
        continue
      }
      const checking = verified.get(place) ?? this.#verify(token, rule)
      verified.set(place, checking)
      try {
        const subject = await checking
        if (claimsHold(rule, subject)) held.push({ rule, subject })
      } catch (error) {
        // The token may be signed with keys that are unavailable now, so this error wins over an error from other keys.
        if (refusal === null || isUnavailable(error)) refusal = error
      }
    }
    const asked = agentId === undefined ? held : held.filter(({ rule }) => rule.agentId === agentId)
    const [first] = asked
    // The audience belonged to another organisation before. A job of that organisation cannot know the agents of the present organisation.
    if (first?.rule.hadOthers === true && agentId === undefined)
      throw fail('bad_request', { message: 'agent_id: must be sent with tokens for this audience. Name the agent that the token is for.' })
    if (first !== undefined && asked.every(({ rule }) => rule.agentId === first.rule.agentId)) return first
    if (first !== undefined)
      throw fail('bad_request', {
        message: `agent_id: trust rules for several agents take this token. Name one: ${[...new Set(asked.map(({ rule }) => rule.agentId))].join(', ')}.`,
      })
    if (isCutOff && held.length === 0)
      throw notTaken(`the trust rules that it may fit name more than ${placesTriedMax} places of keys. An owner has to have rules for it share one`)
    if (refusal !== null) throw refusal
    throw notTaken(
      held.length === 0
        ? 'it is genuine, but its subject and claims are not those of any trust rule'
        : 'no trust rule takes it for the agent that agent_id names',
    )
  }

  /** Verifies the token with the keys of the rule. Pasted keys are read only here, so at most `placesTriedMax` times in one exchange. */
  async #verify(token: string, rule: MatchingTrustRow): Promise<Subject> {
    const { issuerKeys, clock, trust } = this.#deps
    const jwks = rule.hasKeys ? await trust.pastedKeysOf(rule) : null
    return verifySubject(token, { ...rule, jwks }, issuerKeys, clock.nowMs())
  }

  async #keyOf(rule: MatchingTrustRow): Promise<KeyRecord> {
    const key = await this.#deps.keys.byId(rule.keyId)
    if (key === null || key.orgId !== rule.orgId || key.state !== 'active' || key.scope !== 'full')
      throw notTaken('the API key of its trust rule does not work any more. An owner has to make a new rule')
    return key
  }

  async #agentOf(rule: MatchingTrustRow) {
    try {
      return await this.#deps.tokens.agentToMint(rule.orgId, rule.agentId)
    } catch (error) {
      if (error instanceof GatewayError && error.status < 500) throw notTaken('the agent of its trust rule is revoked. An owner has to make a new rule', error)
      throw error
    }
  }
}

/**
 * Returns the rules whose conditions hold for the unverified claims of the token. Returns all rules when no rule holds. The verification then tells a
 * forged token from a genuine token that fits no rule.
 */
function possibleRules(token: string, rules: readonly MatchingTrustRow[]): readonly MatchingTrustRow[] {
  const said = decodeJwt(token)
  const possible = rules.filter(rule => claimsHold(rule, said))
  return possible.length > 0 ? possible : rules
}

const isUnavailable = (error: unknown): boolean => !(error instanceof GatewayError) || error.status >= 500

/** Returns the requested scopes, if they are among the scopes that may be given. Throws `invalid_scope`. */
function narrowed(requested: string | undefined, given: readonly AgentScope[]): readonly AgentScope[] {
  try {
    return narrowedScopes(requested, given)
  } catch (error) {
    if (error instanceof GatewayError) throw fail('invalid_scope', { message: error.message })
    throw error
  }
}

const externalAct: z.ZodType<Act> = z.lazy(() => z.object({ iss: z.string().max(500).optional(), sub: z.string().max(500), act: externalAct.optional() }))

/**
 * Returns the actors before this token. They come from the external token's `act` claim if it has the usual shape and depth. Otherwise they are the
 * agents above the agent.
 */
function innerActOf(subject: Subject, ancestorIds: readonly number[]): { act?: Act } {
  const found = externalAct.safeParse(subject['act'])
  return found.success && depthOf(found.data) <= actDepthMax ? { act: found.data } : actOf(ancestorIds)
}

const depthOf = ({ act }: Act): number => (act === undefined ? 1 : 1 + depthOf(act))

/** Returns whether the text matches the pattern. `*` matches any run of characters, including an empty one. The time is linear in both lengths. */
export function matchesGlob(pattern: string, text: string): boolean {
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

/**
 * Returns whether the subject and every claim of the rule hold. A claim that is a list holds when one of its texts matches. Booleans, and numbers
 * that JSON represents exactly, are compared as text.
 */
export function claimsHold(rule: Pick<TrustRow, 'subject' | 'claims'>, payload: Readonly<Record<string, unknown>>): boolean {
  return valueHolds(rule.subject, payload['sub']) && Object.entries(rule.claims).every(([name, pattern]) => valueHolds(pattern, ownValue(payload, name)))
}

/** Returns the claim of that name. A name that every object inherits, such as `constructor`, is not a claim. */
const ownValue = (payload: Readonly<Record<string, unknown>>, name: string): unknown => (Object.hasOwn(payload, name) ? payload[name] : undefined)

function valueHolds(pattern: string, value: unknown): boolean {
  if (typeof value === 'string') return matchesGlob(pattern, value)
  // Beyond this bound, JSON parsing gives different integers the same value, so a claim could match the id of another account.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) return false
  if (typeof value === 'number' || typeof value === 'boolean') return pattern === String(value)
  return Array.isArray(value) && value.some(each => typeof each === 'string' && matchesGlob(pattern, each))
}
