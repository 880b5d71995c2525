import type { Keys } from '../../gateway/keys/keys.ts'
import type { Clock } from '../../platform/clock.ts'
import { idOfCursor, pageMaxBytes, rowsOfPage } from '../../platform/db/bounded-page.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'
import { agentScopes, type Principal } from '../../platform/security/principal.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { Agents } from '../agents.ts'
import { narrowedScopes } from '../tokens/token-scopes.ts'
import { notTaken } from './oauth-subject.ts'
import { checkConditions, checkPlaces, isShared } from './trust-checks.ts'
import {
  claimAudience,
  countTrust,
  deleteTrust,
  findPastedKeys,
  insertTrust,
  listTrust,
  lockAudience,
  lockTrust,
  type MatchingTrustRow,
  matchingTrust,
  measureTrust,
  type TrustRow,
  takeFreeAudience,
} from './trust-queries.ts'

export interface TrustRulesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly agents: Pick<Agents, 'activeName' | 'tokens' | 'revokedTokens'>
  readonly keys: Pick<Keys, 'byId'>
  readonly guard: UrlGuard
  readonly baseUrl: () => string
}

/** A trust rule as an owner requests it. */
export interface TrustParams {
  readonly name: string
  readonly issuer: string
  readonly audience?: string | undefined
  readonly subject: string
  readonly claims?: Readonly<Record<string, string>> | undefined
  readonly jwks_uri?: string | undefined
  readonly jwks?: { readonly keys: readonly object[] } | undefined
  readonly agent_id: number
  readonly key_id: number
  readonly scope?: string | undefined
  readonly ttl_s?: number | undefined
}

/** Returns the id that tokens of a rule carry in `via`. Revoking this id ends all these tokens. */
export const trustTokenId = (ruleId: number): string => `trust:${ruleId}`

/** Maximum number of rules of an organisation, and of one page of the list. */
export const rulesMax = 100

/**
 * Maximum number of bytes of the rules of an organisation for one issuer, with their pasted keys. Anybody can post a token of that issuer, and an exchange
 * reads the rules before it knows whether the token is genuine. Decision 0653 says why.
 */
const issuerRulesMaxBytes = 256 * 1024
/**
 * Maximum number of rules, and of bytes without keys, that one exchange reads. The audiences of a token may belong to several organisations, and older rules may
 * be longer than `issuerRulesMaxBytes`.
 */
const rulesReadMax = 200
const rulesReadMaxBytes = 256 * 1024

/**
 * The trust rules: they say which tokens of other issuers an organisation exchanges for tokens of its agents. Each exchange reads the rules from the
 * database, so a rule begins and ends immediately on every process. Decision 0196 says why.
 */
export class TrustRules {
  readonly #deps: TrustRulesDeps

  constructor(deps: TrustRulesDeps) {
    this.#deps = deps
  }

  /**
   * Returns a page of the rules of an organisation, oldest first, and the cursor of the next page. A page ends before its rules have more than
   * `pageMaxBytes`. Throws `bad_request` for an invalid cursor.
   */
  async list(orgId: number, limit: number, cursor: string | null) {
    const { rows, hasMore } = rowsOfPage(await this.#deps.db.many(listTrust, orgId, idOfCursor(cursor) ?? 0, limit + 1, pageMaxBytes), limit)
    return { rules: rows.map(viewOf), next_cursor: hasMore ? String(rows.at(-1)?.id) : null }
  }

  /** Creates a rule. Throws `bad_name`, `bad_request`, `agent_revoked` and `cap`. Throws `not_found` for an agent or key that is not the caller's. */
  async create({ orgId, userId }: Pick<Principal, 'orgId' | 'userId'>, params: TrustParams) {
    const { controlLog, clock, agents, guard, baseUrl } = this.#deps
    const { issuer, subject, claims = {} } = params
    const name = cleanName(params.name)
    const scopes = narrowedScopes(params.scope, agentScopes)
    const jwksUri = params.jwks_uri ?? null
    checkPlaces({ issuer, jwksUri, hasKeys: params.jwks !== undefined }, guard, baseUrl())
    checkConditions(issuer, subject, claims)
    const audience = this.#audience(orgId, issuer, params.audience)
    agents.tokens.lifeOf(params.ttl_s)
    const agentId = idOf(params.agent_id, 'There is no such agent.')
    await agents.activeName(orgId, agentId)
    const keyId = await this.#liveFullKey(orgId, userId, params.key_id)
    const row = await controlLog.change(async tx => {
      await tx.one(lockTrust, orgId)
      if ((await tx.one(countTrust, orgId)).count >= rulesMax)
        throw fail('cap', { message: `An organisation has at most ${rulesMax} trust rules. Delete one first.` })
      await checkBytes(tx, orgId, params)
      await this.#takeAudience(tx, orgId, issuer, audience)
      const made = await tx.one(
        insertTrust,
        orgId,
        name,
        issuer,
        audience,
        subject,
        JSON.stringify(claims),
        jwksUri,
        params.jwks === undefined ? null : JSON.stringify(params.jwks),
        agentId,
        keyId,
        scopes,
        params.ttl_s ?? null,
        userId,
        new Date(clock.nowMs()),
      )
      return { value: made, news: [] }
    })
    return viewOf(row)
  }

  /**
   * Deletes a rule. The tokens of the rule end and its running calls are cut. The change is in force on this process when the promise resolves, and
   * on other processes within a second. When the last rule of an audience is deleted, any organisation may use that audience. Throws `not_found`.
   */
  async remove(orgId: number, ruleId: number): Promise<void> {
    const { controlLog, agents } = this.#deps
    await controlLog.change(async tx => {
      if ((await tx.maybe(deleteTrust, orgId, ruleId)) === null) throw noRule()
      return { value: undefined, news: await agents.revokedTokens.revokeIn(tx, orgId, trustTokenId(ruleId)) }
    })
  }

  /** Returns the rules that accept tokens of that issuer for one of these audiences, oldest first. Throws `bad_request` when they are too many or too long. */
  async matching(issuer: string, audiences: readonly string[]): Promise<readonly MatchingTrustRow[]> {
    const { rows, hasMore } = rowsOfPage(await this.#deps.db.many(matchingTrust, issuer, audiences, rulesReadMax + 1, rulesReadMaxBytes), rulesReadMax)
    if (hasMore) throw notTaken('the trust rules for its issuer and its audiences are too many or too long. Request one for fewer audiences')
    return rows
  }

  /** Returns the pasted keys of a rule. Throws `bad_request` when the rule has just ended. */
  async pastedKeysOf({ orgId, id }: Pick<MatchingTrustRow, 'orgId' | 'id'>): Promise<unknown> {
    const found = await this.#deps.db.maybe(findPastedKeys, orgId, id)
    if (found === null) throw notTaken('its trust rule has just ended')
    return found.jwks
  }

  /**
   * Gives the pair of issuer and audience to the organisation. This also works when another organisation deleted its last rule for the pair. Throws
   * `bad_request`. Decision 0464 says why.
   */
  async #takeAudience(tx: Tx, orgId: number, issuer: string, audience: string): Promise<void> {
    await tx.exec(claimAudience, orgId, issuer, audience)
    const holder = await tx.one(lockAudience, issuer, audience)
    const now = new Date(this.#deps.clock.nowMs())
    if (holder.orgId === orgId || (await tx.maybe(takeFreeAudience, orgId, issuer, audience, now)) !== null) return
    throw fail('bad_request', {
      message: `audience: cannot be used with this issuer. Have your tokens made for ${this.#ownAudience(orgId)}, or for an audience that begins with it and a slash, which always can.`,
    })
  }

  #ownAudience(orgId: number): string {
    return `${this.#deps.baseUrl()}/orgs/${orgId}`
  }

  /**
   * Returns the audience that tokens must name. The default is an audience that only this organisation can use. If everybody can get tokens of the
   * issuer, only an audience of the organisation is accepted. Throws `bad_request` for every other audience of such an issuer, and for an audience of
   * another organisation.
   */
  #audience(orgId: number, issuer: string, requested: string | undefined): string {
    const own = this.#ownAudience(orgId)
    if (requested === undefined || requested === own || requested.startsWith(`${own}/`)) return requested ?? own
    // A job that sets no audience gets the default audience of its issuer. If an organisation could claim this default, it would receive the tokens
    // of other organisations' jobs.
    if (isShared(issuer))
      throw fail('bad_request', { message: `audience: everybody has tokens of this issuer, so have yours made for ${own}, and leave this field out.` })
    if (requested.startsWith(`${this.#deps.baseUrl()}/orgs/`))
      throw fail('bad_request', { message: `audience: that one belongs to another organisation. Yours is ${own}.` })
    return requested
  }

  /**
   * Returns the id of a key that the tokens of the rule may use. The key must belong to the author or to no user, because the tokens read the memory
   * of the key's user.
   */
  async #liveFullKey(orgId: number, userId: number | null, requested: number): Promise<number> {
    const keyId = idOf(requested, 'There is no such key.')
    const key = await this.#deps.keys.byId(keyId)
    if (key === null || key.orgId !== orgId) throw fail('not_found', { message: 'There is no such key.' })
    if (key.scope !== 'full' || key.state !== 'active') throw fail('bad_request', { message: 'key_id: must be a key of scope full that works.' })
    if (key.userId !== null && key.userId !== userId)
      throw fail('bad_request', { message: 'key_id: must be a key of your own, or a key without a user: tokens act for the user of their key.' })
    return keyId
  }
}

/** Returns the error for a rule that does not exist. */
export const noRule = () => fail('not_found', { message: 'There is no such trust rule.' })

/** Throws `cap` when the organisation would have too many bytes of rules for the issuer. */
async function checkBytes(tx: Tx, orgId: number, { issuer, audience = '', subject, claims = {}, jwks }: TrustParams): Promise<void> {
  const before = Number((await tx.one(measureTrust, orgId, issuer)).bytes)
  if (before + Buffer.byteLength(JSON.stringify([issuer, audience, subject, claims, jwks ?? null])) <= issuerRulesMaxBytes) return
  throw fail('cap', {
    message: `The trust rules of one issuer have at most ${issuerRulesMaxBytes} bytes together, with their keys. Delete one, or leave out keys that do not sign any more.`,
  })
}

function idOf(given: number, message: string): number {
  const id = rowId(given)
  if (id === null) throw fail('not_found', { message })
  return id
}

function viewOf(row: TrustRow) {
  return {
    id: row.id,
    name: row.name,
    issuer: row.issuer,
    audience: row.audience,
    subject: row.subject,
    claims: row.claims,
    jwks_uri: row.jwksUri,
    jwks: row.jwks,
    agent_id: row.agentId,
    key_id: row.keyId,
    scope: row.scopes.join(' '),
    ttl_s: row.ttlSeconds,
    created_at: row.createdAt.toISOString(),
  }
}
