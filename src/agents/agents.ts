import type { Keys } from '../gateway/keys/keys.ts'
import { capOfInr } from '../gateway/limits/budget-amount.ts'
import { cleanName } from '../platform/clean-name.ts'
import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db.ts'
import type { ControlLog, NewsItem } from '../platform/db-control-log.ts'
import { fail } from '../platform/errors.ts'
import { ExpiringCache } from '../platform/expiring-cache.ts'
import type { Ids } from '../platform/ids.ts'
import type { Inflight } from '../platform/inflight.ts'
import type { Log } from '../platform/log.ts'
import type { CallPolicy, Principal } from '../platform/principal.ts'
import { rowId } from '../platform/row-id.ts'
import type { Sealer } from '../platform/secrets.ts'
import { AgentBudgets, type BudgetBook } from './agent-budgets.ts'
import { type AgentWish, isAsWished, policiesOf } from './agent-rules.ts'
import { AgentTokens } from './agent-tokens.ts'
import { type AgentPage, type AgentView, cursorBehind, cursorOf, viewOf } from './agent-view.ts'
import { Children } from './children.ts'
import { FamilyRules } from './family-rules.ts'
import { KillSwitch } from './kill-switch.ts'
import {
  type AgentRow,
  type AgentWithAncestors,
  activeNamesOf,
  findActiveByName,
  findAgent,
  findByLabel,
  findRules,
  insertAgent,
  listAgents,
  lockActiveByName,
  lockAgent,
  namesOf,
  revokeTree,
  setAgentRules,
} from './queries.ts'
import { RevokedTokens } from './revoked-tokens.ts'
import { SigningKeys } from './signing-keys.ts'
import { noAgent } from './token-refusal.ts'

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
  /** AGENT_TOKEN_TTL_S. */
  readonly tokenTtlSeconds: number
  /** AGENT_STALE_MS. */
  readonly staleMs: number
  /** CACHE_TTL_MS. */
  readonly cacheTtlMs: number
  /** Budgets of all scopes. */
  readonly budgets: BudgetBook
}

/** The agent that a label means. */
export interface LabelledAgent extends AgentWithAncestors {
  /** What is ruled for its calls: its own rules and those of all above it. */
  readonly policies: readonly CallPolicy[]
}

const labelsCachedMax = 50_000
/** Agents that one list shows at most, active ones first. */
const agentsListedMax = 1_000
/** A name can be taken and revoked between two statements; more often than this it is not bad luck any more. */
const createAttemptsMax = 5
/** Generations of children are at most 3, and each pass sees what was committed while the one before it waited. */
const revokePassesMax = 8

/** Agent identities: made by name, listed with their budgets, revoked with all below them. Tokens, signing keys and the kill switch hang on it. */
export class Agents {
  readonly #deps: AgentsDeps
  readonly #byLabel: ExpiringCache<string, LabelledAgent>
  readonly #rules: FamilyRules
  readonly killSwitch: KillSwitch
  readonly signingKeys: SigningKeys
  readonly revokedTokens: RevokedTokens
  readonly tokens: AgentTokens
  readonly budgets: AgentBudgets
  readonly children: Children

  constructor(deps: AgentsDeps) {
    this.#deps = deps
    const tokenTtlMs = deps.tokenTtlSeconds * 1000
    this.killSwitch = new KillSwitch({ ...deps, tokenTtlMs })
    this.signingKeys = new SigningKeys({ ...deps, tokenTtlMs })
    this.#rules = new FamilyRules({ ...deps, load: id => this.#loadPolicies(id) })
    this.revokedTokens = new RevokedTokens({ ...deps, tokenTtlMs })
    const { signingKeys, killSwitch, revokedTokens } = this
    this.tokens = new AgentTokens({
      ...deps,
      ttlSeconds: deps.tokenTtlSeconds,
      signingKeys,
      killSwitch,
      revokedTokens,
      policiesOf: (id, ancestorIds) => this.#rules.of(id, ancestorIds),
    })
    this.budgets = new AgentBudgets(deps)
    this.children = new Children({ ...deps, tokens: this.tokens, agentBudgets: this.budgets, made: (orgId, row) => this.#forgetLabels(orgId, row) })
    this.#byLabel = new ExpiringCache({ max: labelsCachedMax, ttlMs: deps.cacheTtlMs, clock: deps.clock, load: key => this.#loadLabel(key) })
    deps.controlLog.on(news => {
      if (news.kind === 'agent_revoked' || news.kind === 'agent_changed') this.#byLabel.clear()
    })
    deps.controlLog.onGap(() => this.#byLabel.clear())
  }

  /** To be called after the control log has started. */
  async start(): Promise<void> {
    await this.killSwitch.start()
    await this.revokedTokens.start()
  }

  stop(): void {
    this.killSwitch.stop()
    this.revokedTokens.stop()
  }

  /**
   * The active agent of that name, made when there is none; however many ask at once, there is one. A revoked agent's name makes a
   * new identity. What the wish names is set on a reused agent too; the rest of it stays. Throws `bad_name`.
   */
  async createOrReuse(principal: Principal, wishedName: string, wish: AgentWish = {}): Promise<{ agent: AgentView; isNew: boolean }> {
    const name = cleanName(wishedName)
    const { db, clock } = this.#deps
    const { orgId, userId } = principal
    const keyId = principal.kind === 'session' ? null : principal.keyId
    for (let attempt = 0; attempt < createAttemptsMax; attempt++) {
      const made = await db.maybe(
        insertAgent,
        orgId,
        name,
        wish.mayDelegate ?? false,
        keyId,
        userId,
        new Date(clock.nowMs()),
        wish.allowedModels ?? null,
        wish.allowedProviders ?? null,
        wish.maxCostUinr ?? null,
        wish.maxOutputTokens ?? null,
        wish.maxConcurrency ?? null,
        null,
        0,
      )
      if (made !== null) {
        this.#forgetLabels(orgId, made)
        return { agent: await this.#view(orgId, made), isNew: true }
      }
      const found = await db.maybe(findActiveByName, orgId, name)
      const reused = found === null || isAsWished(found, wish) ? found : await this.#change(orgId, tx => tx.maybe(lockActiveByName, orgId, name), wish)
      if (reused !== null) return { agent: await this.#view(orgId, reused), isNew: false }
    }
    throw new Error('an agent name was made and revoked over and over while it was being created')
  }

  /**
   * Changes what is ruled for an agent; what the wish does not name stays, null lifts a rule. In force here when this returns,
   * elsewhere within a second. Throws `not_found` and `agent_revoked` (409).
   */
  async update(orgId: number, agentId: number, wish: AgentWish): Promise<AgentView> {
    const row = await this.#change(
      orgId,
      async tx => {
        const found = await tx.maybe(lockAgent, orgId, agentId)
        if (found?.status === 'revoked') throw fail('agent_revoked')
        return found
      },
      wish,
    )
    if (row === null) throw noAgent()
    return this.#view(orgId, row)
  }

  /** The org's agents with their budgets: active ones first, newest first; at most `limit` of them behind the cursor. Throws `bad_request` for a cursor that is none. */
  async list(orgId: number, page: { limit?: number | undefined; cursor?: string | undefined } = {}): Promise<AgentPage> {
    const { limit = agentsListedMax } = page
    const after = page.cursor === undefined ? null : cursorOf(page.cursor)
    const rows = await this.#deps.db.many(listAgents, orgId, after?.status ?? null, after?.id ?? 0, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return { agents: await this.#views(orgId, shown), nextCursor: rows.length > limit && last !== undefined ? cursorBehind(last) : null }
  }

  /** Ends an agent and every agent below it: tokens are refused and running calls cut, here when this returns, elsewhere within a second. Ending it twice is fine. Throws `not_found`. */
  async revoke(orgId: number, agentId: number): Promise<AgentView> {
    const { controlLog, clock } = this.#deps
    const row = await controlLog.change(async tx => {
      const revoked: { id: number; epoch: number }[] = []
      // Again until nothing is left: a child may have been committed while the statement waited for its parent's lock.
      for (let pass = 0; pass < revokePassesMax; pass++) {
        const rows = await tx.many(revokeTree, orgId, agentId, new Date(clock.nowMs()))
        if (rows.length === 0) break
        revoked.push(...rows)
      }
      const found = await tx.maybe(findAgent, orgId, agentId)
      if (found === null) throw noAgent()
      return { value: found, news: revoked.map((agent): NewsItem => ({ kind: 'agent_revoked', ref: String(agent.id), epoch: agent.epoch })) }
    })
    return this.#view(orgId, row)
  }

  /** Sets the monthly budget in rupees; null or 0 clears it. Throws `bad_request`, `not_found`, `budget_not_available` and, for a revoked agent, 409 `agent_revoked`. */
  async setBudget(orgId: number, agentId: number, monthlyBudgetInr: number | null): Promise<AgentView> {
    return this.#view(orgId, await this.budgets.set(orgId, agentId, capOfInr(monthlyBudgetInr)))
  }

  /** The agent with its budget, for whoever has its row. */
  viewOf(orgId: number, row: AgentRow): Promise<AgentView> {
    return this.#view(orgId, row)
  }

  /** The name of an active agent. Throws `not_found` and, for a revoked one, 409 `agent_revoked`. */
  async activeName(orgId: number, agentId: number): Promise<string> {
    return (await this.#activeAgent(orgId, agentId)).name
  }

  /** Names of the active ones among these agents, by id. */
  async activeNames(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = agentIds.length === 0 ? [] : await this.#deps.db.many(activeNamesOf, orgId, agentIds)
    return new Map(rows.map(row => [row.id, row.name]))
  }

  /**
   * The agent that a label means, by id or exact name, or null. A revoked agent is found as long as no active one has the name. Synchronous
   * when cached. Throws 503 when this process has had no news for too long to say whether it is still active: a label is no way around that.
   */
  byLabel(orgId: number, label: string): LabelledAgent | null | Promise<LabelledAgent | null> {
    const found = this.#byLabel.get(labelKey(orgId, label))
    return found instanceof Promise ? found.then(agent => this.#standing(agent)) : this.#standing(found)
  }

  /** Names by id, for reports. Ids of other organisations are left out. */
  async names(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    if (agentIds.length === 0) return new Map()
    const rows = await this.#deps.db.many(namesOf, orgId, agentIds)
    return new Map(rows.map(row => [row.id, row.name]))
  }

  /** What was read of a labelled agent, set right by the news that came since. */
  #standing(agent: LabelledAgent | null): LabelledAgent | null {
    if (agent === null || agent.status === 'revoked') return agent
    return this.killSwitch.stands(agent) ? agent : { ...agent, status: 'revoked' }
  }

  async #loadLabel(key: string): Promise<LabelledAgent | null> {
    const cut = key.indexOf(':')
    const label = key.slice(cut + 1)
    const found = await this.#deps.db.maybe(findByLabel, Number(key.slice(0, cut)), rowId(label), label)
    return found === null ? null : { ...found, policies: (await this.#rules.of(found.id, found.ancestorIds)) ?? [] }
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

  /** Brings a wish to the agent that `find` locks, and tells every process when that changes something. Null: there is none. */
  #change(orgId: number, find: (tx: Tx) => Promise<AgentRow | null>, wish: AgentWish): Promise<AgentRow | null> {
    return this.#deps.controlLog.change(async tx => {
      const before = await find(tx)
      if (before === null || isAsWished(before, wish)) return { value: before, news: [] }
      const { id, mayDelegate, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency } = { ...before, ...wish }
      const row = await tx.one(setAgentRules, orgId, id, mayDelegate, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency)
      return { value: row, news: [{ kind: 'agent_changed', ref: String(id) }] }
    })
  }

  /** A label that meant nobody may mean this agent now. */
  #forgetLabels(orgId: number, { id, name }: AgentRow): void {
    this.#byLabel.invalidate(labelKey(orgId, name))
    this.#byLabel.invalidate(labelKey(orgId, String(id)))
  }

  async #view(orgId: number, row: AgentRow): Promise<AgentView> {
    return viewOf(row, (await this.budgets.list(orgId, [row.id])).get(row.id))
  }

  async #views(orgId: number, rows: readonly AgentRow[]): Promise<AgentView[]> {
    const budgets = await this.budgets.list(
      orgId,
      rows.map(row => row.id),
    )
    return rows.map(row => viewOf(row, budgets.get(row.id)))
  }
}

/** Makes the agents service. */
export function createAgents(deps: AgentsDeps): Agents {
  return new Agents(deps)
}

const labelKey = (orgId: number, label: string): string => `${orgId}:${label}`
