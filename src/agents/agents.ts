import type { Keys } from '../gateway/keys/keys.ts'
import { clearingCapOfInr } from '../gateway/limits/budgets/budget-amount.ts'
import { namesOfActiveMembers } from '../gateway/orgs/active-names.ts'
import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../platform/errors.ts'
import { ExpiringCache } from '../platform/loop/expiring-cache.ts'
import type { Inflight } from '../platform/loop/inflight.ts'
import type { Log } from '../platform/observe/log.ts'
import type { AgentPrincipal, CallPolicy, Principal } from '../platform/security/principal.ts'
import { capsAfter, capsText } from '../platform/security/run-caps.ts'
import type { Sealer } from '../platform/security/secrets.ts'
import { formsOfName } from '../platform/values/clean-name.ts'
import type { Ids } from '../platform/values/ids.ts'
import { rowId } from '../platform/values/row-id.ts'
import { AgentBudgets, type BudgetBook } from './agent-budgets.ts'
import { type AgentParams, isAsRequested, policiesOf, runCapsAfter } from './agent-rules.ts'
import type { AgentPage, AgentView } from './agent-view.ts'
import {
  type Actor,
  adminSetAfter,
  adminSetOfNew,
  changesOf,
  checkActing,
  checkBelow,
  checkEnded,
  checkEnding,
  checkLoosening,
  checkResuming,
  isAdmin,
  loosened,
  noPauser,
  refusalOfLoosening,
  strongerPauser,
} from './authority.ts'
import { Children } from './children/children.ts'
import { FamilyRules } from './children/family-rules.ts'
import { KillSwitch } from './kill-switch.ts'
import { type AgentFamily, familyOf } from './listing/agent-family.ts'
import { type AgentFilter, AgentList } from './listing/agent-list.ts'
import { AgentViews } from './listing/agent-views.ts'
import { agentPause, isPausedAt, Pauses } from './pauses.ts'
import { Playgrounds } from './playground/playgrounds.ts'
import {
  type AgentRow,
  type AgentWithAncestors,
  activeNamesOf,
  findActiveByName,
  findAgent,
  findByLabel,
  findRules,
  findWithAncestors,
  insertAgent,
  lockActive,
  lockAgent,
  namesOf,
  ownedOf,
  revokeTree,
  setAgentRules,
  setOwner,
  setPause,
} from './queries.ts'
import { AgentTokens } from './tokens/agent-tokens.ts'
import { RevokedTokens } from './tokens/revoked-tokens.ts'
import { SigningKeys } from './tokens/signing-keys.ts'
import { noAgent } from './tokens/token-refusal.ts'

export interface AgentsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly controlLog: ControlLog
  readonly inflight: Inflight
  readonly keys: Keys
  readonly sealer: Sealer
  /** Public base URL without a trailing slash. */
  readonly baseUrl: () => string
  /** The setting AGENT_TOKEN_TTL_S. */
  readonly tokenTtlSeconds: number
  /** The setting AGENT_STALE_MS. */
  readonly staleMs: number
  /** The setting CACHE_TTL_MS. */
  readonly cacheTtlMs: number
  /** Budgets of all scopes. */
  readonly budgets: BudgetBook
  /** The setting PLAYGROUND_BUDGET_INR. */
  readonly playgroundBudgetInr: number
  /** Throws `org_limit_reached` when the organisation may not have one more agent. When it is left out, there is no limit. */
  readonly allowOneMore?: (tx: Tx, orgId: number) => Promise<void>
}

/** The changes of one request. A field that is left out does not change. */
export interface AgentChanges extends AgentParams {
  /** The user id of the member who answers for the agent from now on. */
  readonly ownerUser?: number | undefined
}

interface Changed {
  readonly value: AgentRow
  readonly news: readonly NewsItem[]
}

/** The agent that a label names. */
export interface LabelledAgent extends AgentWithAncestors {
  /** The rules of the agent's calls: its own rules and the rules of all agents above it. */
  readonly policies: readonly CallPolicy[]
}

const labelsCachedMax = 50_000
/** The kind of news that an agent has another owner. Its ref is the agent's id. */
const agentOwner = 'agent_owner'
/**
 * Maximum number of tries to create an agent. A try fails when another request creates or revokes an agent of that name between two statements. After
 * this many failures, chance is not the cause.
 */
const createAttemptsMax = 5
/**
 * Maximum number of passes of one revocation. There are at most 3 generations of children. Each pass sees the children that were committed while the
 * previous pass waited for a lock.
 */
const revokePassesMax = 8

/**
 * Manages the identities of agents. It creates them by name, lists them with their budgets, and revokes them with all agents below them. It owns
 * tokens, signing keys and the kill switch.
 */
export class Agents {
  readonly #deps: AgentsDeps
  readonly #byLabel: ExpiringCache<string, AgentWithAncestors>
  readonly #rules: FamilyRules
  readonly killSwitch: KillSwitch
  readonly pauses: Pauses
  readonly signingKeys: SigningKeys
  readonly revokedTokens: RevokedTokens
  readonly tokens: AgentTokens
  readonly budgets: AgentBudgets
  readonly children: Children
  readonly playgrounds: Playgrounds
  readonly #views: AgentViews
  readonly #list: AgentList

  constructor(deps: AgentsDeps) {
    this.#deps = deps
    const tokenTtlMs = deps.tokenTtlSeconds * 1000
    this.killSwitch = new KillSwitch({ ...deps, tokenTtlMs })
    this.pauses = new Pauses(deps)
    this.signingKeys = new SigningKeys({ ...deps, tokenTtlMs })
    this.#rules = new FamilyRules({ ...deps, load: id => this.#loadPolicies(id) })
    this.revokedTokens = new RevokedTokens({ ...deps, tokenTtlMs })
    const { signingKeys, killSwitch, revokedTokens, pauses } = this
    this.tokens = new AgentTokens({
      ...deps,
      ttlSeconds: deps.tokenTtlSeconds,
      signingKeys,
      killSwitch,
      revokedTokens,
      pauses,
      policiesOf: (id, ancestorIds) => this.#rules.of(id, ancestorIds),
    })
    this.budgets = new AgentBudgets(deps)
    this.children = new Children({ ...deps, tokens: this.tokens, agentBudgets: this.budgets, made: (orgId, row) => this.#forgetLabels(orgId, row) })
    this.#byLabel = new ExpiringCache({ max: labelsCachedMax, ttlMs: deps.cacheTtlMs, clock: deps.clock, load: key => this.#loadLabel(key) })
    this.#views = new AgentViews({ db: deps.db, budgets: this.budgets })
    this.#list = new AgentList({ db: deps.db, book: deps.budgets, budgets: this.budgets, views: this.#views })
    this.playgrounds = new Playgrounds({ ...deps, tokens: this.tokens, agentBudgets: this.budgets, views: this.#views })
    // The cache holds the owner, who may use the label with a key of scope inference.
    deps.controlLog.on(news => {
      if (news.kind === agentOwner) this.#byLabel.invalidateWhere(agent => agent.id === Number(news.ref))
    })
    deps.controlLog.onGap(() => this.#byLabel.clear())
  }

  /** Loads the state of the kill switch, revoked tokens and pauses. Call it after the control log has started. */
  async start(): Promise<void> {
    await this.killSwitch.start()
    await this.revokedTokens.start()
    await this.pauses.start()
  }

  stop(): void {
    this.killSwitch.stop()
    this.revokedTokens.stop()
    this.pauses.stop()
  }

  /**
   * Returns the active agent of that name, and creates it when there is none. Concurrent requests for one name create one agent. The name of a
   * revoked agent creates a new identity. The request's fields also change an existing agent, whose other fields stay the same. Throws `bad_name`.
   */
  async createOrReuse(principal: Principal, requestedName: string, params: AgentParams = {}): Promise<{ agent: AgentView; isNew: boolean }> {
    const forms = formsOfName(requestedName)
    const [name = ''] = forms
    const { db, clock } = this.#deps
    const { orgId, userId } = principal
    const keyId = principal.kind === 'session' ? null : principal.keyId
    const adminSet = adminSetOfNew(principal, params)
    const insert = async (tx: Tx): Promise<AgentRow | null> => {
      await this.#deps.allowOneMore?.(tx, orgId)
      const { mayDelegate = false, allowedModels = null, allowedProviders = null, maxCostUinr = null, maxOutputTokens = null } = params
      const at = new Date(clock.nowMs())
      return tx.maybe(
        insertAgent,
        orgId,
        name,
        mayDelegate,
        keyId,
        userId,
        at,
        allowedModels,
        allowedProviders,
        maxCostUinr,
        maxOutputTokens,
        params.maxConcurrency ?? null,
        null,
        0,
        adminSet,
        params.allowedTools ?? null,
        capsText(capsAfter(null, params.run ?? null)),
        params.tpmLimit ?? null,
        params.toolRpm ?? null,
        params.toolDaily ?? null,
      )
    }
    for (let attempt = 0; attempt < createAttemptsMax; attempt++) {
      // An active agent of that name is returned, even when the organisation may not create more agents.
      const found = await db.maybe(findActiveByName, orgId, forms)
      const made = found === null ? await db.tx(insert) : null
      if (made !== null) {
        this.#forgetLabels(orgId, made)
        return { agent: await this.#views.one(orgId, made), isNew: true }
      }
      const reused = found === null || Object.keys(params).length === 0 ? found : await this.#change(orgId, found.id, params, principal)
      if (reused !== null) return { agent: await this.#views.one(orgId, reused), isNew: false }
    }
    throw new Error('an agent name was made and revoked over and over while it was being created')
  }

  /**
   * Changes the rules and the owner of an agent. A field that the request does not name does not change, and null removes a rule. The change is in force
   * on this process when the promise resolves, and on other processes within a second. Only owners and admins of the organisation name an owner, who is
   * an active member. Throws `forbidden`, `not_found`, `bad_request` and `agent_revoked` (409).
   */
  async update(orgId: number, agentId: number, { ownerUser, ...params }: AgentChanges, by: Actor): Promise<AgentView> {
    const row = await this.#deps.controlLog.change(async tx => {
      const found = await tx.maybe(lockAgent, orgId, agentId)
      if (found === null) throw noAgent()
      checkActing(by, found)
      if (found.status === 'revoked') throw fail('agent_revoked')
      const given = ownerUser === undefined ? { value: found, news: [] } : await this.#giveIn(tx, orgId, found, ownerUser, by)
      const changed = await this.#changeIn(tx, orgId, given.value, params, by)
      return { value: changed.value, news: [...given.news, ...changed.news] }
    })
    return this.#views.one(orgId, row)
  }

  /**
   * Returns a page of the organisation's agents with their budgets. Active agents come before revoked agents. Without another order, the newest agents
   * come first within both groups. Throws `bad_request` for an invalid cursor.
   */
  list(orgId: number, filter: AgentFilter = {}): Promise<AgentPage> {
    return this.#list.page(orgId, filter)
  }

  /** Returns the number of agents that a filter chooses. A very large organisation gets a bound of it. */
  total(orgId: number, filter: AgentFilter): Promise<number> {
    return this.#list.total(orgId, filter)
  }

  /** Returns an agent with its family. Throws `not_found`. */
  async family(orgId: number, agentId: number): Promise<AgentFamily> {
    const { db, inflight } = this.#deps
    const found = await familyOf({ db, budgets: this.budgets, views: this.#views }, orgId, agentId)
    if (found === null) throw noAgent()
    return { ...found, running_requests: inflight.countOf(agentId) }
  }

  /**
   * Ends an agent and every agent below it. Their tokens are refused and their running calls are cut. The change is in force on this process when the
   * promise resolves, and on other processes within a second. A second call changes nothing. Throws `not_found`, and `forbidden` for an actor who may
   * not end the agent.
   */
  revoke(orgId: number, agentId: number, by: Actor): Promise<AgentView> {
    return this.#end(orgId, agentId, by, async (_tx, agent) => checkEnding(by, agent))
  }

  /** Revokes an agent below the calling agent, as `revoke` does. Throws `not_found` for every other agent. */
  async revokeBelow(by: AgentPrincipal, descendantId: number): Promise<AgentView> {
    const { orgId, agentId } = by
    return this.#end(orgId, await this.descendant(orgId, agentId, descendantId), by, async (tx, agent) =>
      checkBelow(by, await tx.one(findAgent, orgId, agentId), agent),
    )
  }

  async #end(orgId: number, agentId: number, by: Actor, check: (tx: Tx, agent: AgentRow) => Promise<void>): Promise<AgentView> {
    const { controlLog, clock } = this.#deps
    const row = await controlLog.change(async tx => {
      const before = await tx.maybe(findAgent, orgId, agentId)
      if (before === null) throw noAgent()
      await check(tx, before)
      const revoked: { id: number; epoch: number }[] = []
      // This repeats until no active agent is left, because a child may have been committed while the statement waited for the lock of its parent.
      for (let pass = 0; pass < revokePassesMax; pass++) {
        const rows = await tx.many(revokeTree, orgId, agentId, new Date(clock.nowMs()))
        if (rows.length === 0) break
        // The check reads the rows that the update returns, so no limit changes between the update and the check. A refusal rolls back the whole
        // transaction.
        checkEnded(by, rows)
        revoked.push(...rows)
      }
      const found = await tx.maybe(findAgent, orgId, agentId)
      if (found === null) throw noAgent()
      return { value: found, news: revoked.map((agent): NewsItem => ({ kind: 'agent_revoked', ref: String(agent.id), epoch: agent.epoch })) }
    })
    return this.#views.one(orgId, row)
  }

  /**
   * Pauses or resumes an agent. While it is paused, calls of this agent and of all agents below it are refused with `agent_paused`, and running calls
   * are cut. The change is in force on this process when the promise resolves, and on other processes within a second. A second call changes nothing.
   * Throws `not_found`, `agent_revoked` (409), and `forbidden` for an actor who may not resume the agent.
   */
  async setPaused(orgId: number, agentId: number, isPaused: boolean, by: Actor): Promise<AgentView> {
    const row = await this.#deps.controlLog.change(async tx => {
      const before = await tx.maybe(lockAgent, orgId, agentId)
      if (before === null) throw noAgent()
      checkActing(by, before)
      if (before.status === 'revoked') throw fail('agent_revoked')
      const wasPaused = isPausedAt(before.pauseSeq)
      const self = by !== 'operator' && by.kind === 'agent' ? await tx.one(findAgent, orgId, by.agentId) : null
      if (!isPaused && wasPaused) checkResuming(by, before, self)
      const { pausedBy, pausedByDepth } = isPaused ? strongerPauser(wasPaused ? before : noPauser, by, self) : noPauser
      if (isPaused === wasPaused && pausedBy === before.pausedBy && pausedByDepth === before.pausedByDepth) return { value: before, news: [] }
      const pauseSeq = isPaused === wasPaused ? before.pauseSeq : before.pauseSeq + 1
      return {
        value: await tx.one(setPause, orgId, agentId, pauseSeq, pausedBy, pausedByDepth),
        news: [{ kind: agentPause, ref: String(agentId), epoch: pauseSeq }],
      }
    })
    return this.#views.one(orgId, row)
  }

  /** Resolves with the error if the actor may not raise the budget, or caps of runs, or null. Throws `not_found`, and `forbidden` for who may not act on the agent. */
  async checkActing(by: Exclude<Actor, 'operator'>, agentId: number, limit: 'budget' | 'run' = 'run'): Promise<GatewayError | null> {
    const found = await this.#deps.db.maybe(findAgent, by.orgId, agentId)
    if (found === null) throw noAgent()
    checkActing(by, found)
    return refusalOfLoosening(by, found, [limit])
  }

  /** Returns `descendantId` as the id of an agent below `agentId`. Throws `not_found` for every other id. */
  async descendant(orgId: number, agentId: number, descendantId: number): Promise<number> {
    const found = await this.#deps.db.maybe(findWithAncestors, orgId, descendantId)
    if (found === null || !found.ancestorIds.includes(agentId)) throw noAgent()
    return found.id
  }

  /**
   * Sets the monthly budget in rupees. Null or 0 removes it. Throws `bad_request`, `not_found`, `budget_not_available` and, for a revoked agent, 409
   * `agent_revoked`.
   */
  async setBudget(orgId: number, agentId: number, monthlyBudgetInr: number | null, by: Actor): Promise<AgentView> {
    return this.#views.one(orgId, await this.budgets.set(orgId, agentId, clearingCapOfInr(monthlyBudgetInr), by))
  }

  /** Returns the agent with its budget, for a caller that has its row. */
  viewOf(orgId: number, row: AgentRow): Promise<AgentView> {
    return this.#views.one(orgId, row)
  }

  /** Returns the name of an active agent. Throws `not_found` and, for a revoked agent, 409 `agent_revoked`. */
  async activeName(orgId: number, agentId: number): Promise<string> {
    return (await this.#activeAgent(orgId, agentId)).name
  }

  /** Returns the names of the active agents among these ids, by id. */
  async activeNames(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = agentIds.length === 0 ? [] : await this.#deps.db.many(activeNamesOf, orgId, agentIds)
    return new Map(rows.map(row => [row.id, row.name]))
  }

  /** Returns those of these agents that a member owns. */
  async ownedBy(orgId: number, agentIds: readonly number[], userId: number): Promise<readonly number[]> {
    return (await this.#deps.db.many(ownedOf, orgId, agentIds, userId)).map(row => row.id)
  }

  /**
   * Returns the agent that a label names by id or exact name, or null. An agent that another agent made is named by its id only. A revoked agent is
   * returned only while no active agent has the name. The result is synchronous when it is cached. Throws 503 when this process has not read the control
   * log for too long to know whether the agent is active. A label therefore cannot bypass the kill switch.
   */
  byLabel(orgId: number, label: string): LabelledAgent | null | Promise<LabelledAgent | null> {
    const key = labelKey(orgId, label)
    const found = this.#byLabel.get(key)
    return found instanceof Promise ? found.then(agent => this.#labelled(key, agent)) : this.#labelled(key, found)
  }

  /** Returns names by id, for reports. Ids of other organisations are left out. */
  async names(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    if (agentIds.length === 0) return new Map()
    const rows = await this.#deps.db.many(namesOf, orgId, agentIds)
    return new Map(rows.map(row => [row.id, row.name]))
  }

  /**
   * Returns the agent of a cached label as it is now. News does not drop labels, because it names no organisation: the kill switch, the pauses and the
   * rules are asked instead, which know each agent by its id. Decision 0525 says why.
   */
  #labelled(key: string, agent: AgentWithAncestors | null): LabelledAgent | null | Promise<LabelledAgent | null> {
    if (agent === null) return null
    if (agent.status === 'active' && this.killSwitch.stands(agent)) {
      this.pauses.check(agent.id, agent.ancestorIds)
      return this.#withRules(agent)
    }
    if (agent.status === 'revoked') return this.#withRules(agent)
    // The agent was revoked after the label was read, and a new agent may have its name.
    this.#byLabel.invalidate(key)
    return Promise.resolve(this.#byLabel.get(key)).then(found =>
      found === null ? null : this.#withRules(found.status === 'revoked' || this.killSwitch.stands(found) ? found : { ...found, status: 'revoked' }),
    )
  }

  #withRules(agent: AgentWithAncestors): LabelledAgent | Promise<LabelledAgent> {
    const policies = this.#rules.of(agent.id, agent.ancestorIds)
    return policies instanceof Promise ? policies.then(found => ({ ...agent, policies: found ?? [] })) : { ...agent, policies: policies ?? [] }
  }

  #loadLabel(key: string): Promise<AgentWithAncestors | null> {
    const cut = key.indexOf(':')
    const label = key.slice(cut + 1)
    return this.#deps.db.maybe(findByLabel, Number(key.slice(0, cut)), rowId(label), label)
  }

  async #loadPolicies(agentId: number): Promise<readonly CallPolicy[] | null> {
    const rules = await this.#deps.db.maybe(findRules, agentId)
    return rules === null ? null : policiesOf(agentId, rules)
  }

  async #activeAgent(orgId: number, agentId: number): Promise<AgentRow> {
    const row = await this.#deps.db.maybe(findAgent, orgId, agentId)
    if (row === null) throw noAgent()
    if (row.status === 'revoked') throw fail('agent_revoked')
    return row
  }

  /** Applies a request to an active agent. Returns null when it was revoked meanwhile. */
  #change(orgId: number, agentId: number, params: AgentParams, by: Actor): Promise<AgentRow | null> {
    return this.#deps.controlLog.change<AgentRow | null>(async tx => {
      const before = await tx.maybe(lockActive, orgId, agentId)
      return before === null ? { value: null, news: [] } : this.#changeIn(tx, orgId, before, params, by)
    })
  }

  /** Applies a request to a locked agent. Returns the news for every process when the agent changes. */
  async #changeIn(tx: Tx, orgId: number, before: AgentRow, params: AgentParams, by: Actor): Promise<Changed> {
    checkActing(by, before)
    if (before.playgroundUser !== null && params.mayDelegate === true) throw fail('forbidden', { message: 'A playground agent has no children.' })
    if (before.parentId !== null && params.run) throw fail('bad_request', { message: runsOfChildren })
    checkLoosening(by, before, loosened(params, before))
    const adminSet = adminSetAfter(by, before, changesOf(params))
    if (isAsRequested(before, params) && isSameSet(adminSet, before.adminSet)) return { value: before, news: [] }
    const after = { ...before, ...params }
    const { id, mayDelegate, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency } = after
    const caps = [maxCostUinr, maxOutputTokens, maxConcurrency] as const
    const others = [adminSet, after.allowedTools, capsText(runCapsAfter(before, params)), after.tpmLimit, after.toolRpm, after.toolDaily] as const
    const row = await tx.one(setAgentRules, orgId, id, mayDelegate, allowedModels, allowedProviders, ...caps, ...others)
    return { value: row, news: [{ kind: 'agent_changed', ref: String(id) }] }
  }

  /** Gives a locked agent another owner. The former owner keeps no right over it. */
  async #giveIn(tx: Tx, orgId: number, before: AgentRow, ownerUser: number, by: Actor): Promise<Changed> {
    if (!isAdmin(by)) throw fail('forbidden', { message: 'Only an owner or admin of the organisation gives an agent another owner.' })
    if (before.ownerUser === ownerUser) return { value: before, news: [] }
    if (before.playgroundUser !== null) throw fail('forbidden', { message: 'A playground agent belongs to its person.' })
    if ((await namesOfActiveMembers(tx, orgId, [ownerUser])).size === 0)
      throw fail('bad_request', { message: 'owner_uid: must be an active member. GET /me/members lists them.' })
    return { value: await tx.one(setOwner, orgId, before.id, ownerUser), news: [{ kind: agentOwner, ref: String(before.id) }] }
  }

  /** Drops the cache entries for the agent's name and id. A label that named no agent before may name this agent now. */
  #forgetLabels(orgId: number, { id, name }: AgentRow): void {
    this.#byLabel.invalidate(labelKey(orgId, name))
    this.#byLabel.invalidate(labelKey(orgId, String(id)))
  }
}

/** Creates the agents service. */
export function createAgents(deps: AgentsDeps): Agents {
  return new Agents(deps)
}

const runsOfChildren = 'run: a run belongs to the agent at the top of its family. Set the caps there.'
const isSameSet = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every(name => b.includes(name))
const labelKey = (orgId: number, label: string): string => `${orgId}:${label}`
