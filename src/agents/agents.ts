import type { Keys } from '../gateway/keys/keys.ts'
import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db.ts'
import type { ControlLog, NewsItem } from '../platform/db-control-log.ts'
import { fail } from '../platform/errors.ts'
import { ExpiringCache } from '../platform/expiring-cache.ts'
import type { Ids } from '../platform/ids.ts'
import type { Inflight } from '../platform/inflight.ts'
import type { Log } from '../platform/log.ts'
import { inrFromUinr, uinrFromInr } from '../platform/money.ts'
import type { CallPolicy, Principal } from '../platform/principal.ts'
import type { Sealer } from '../platform/secrets.ts'
import { AgentTokens } from './agent-tokens.ts'
import { KillSwitch } from './kill-switch.ts'
import {
  type AgentRow,
  type AgentStatus,
  type AgentWithAncestors,
  findAgent,
  findByLabel,
  insertAgent,
  listAgents,
  namesOf,
  reuseAgent,
  revokeTree,
} from './queries.ts'
import { SigningKeys } from './signing-keys.ts'

/** The monthly budget of an agent and what it has spent in the running IST month. */
export interface AgentBudget {
  /** null = none. */
  readonly capUinr: bigint | null
  readonly spendMonthUinr: bigint
}

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
  /** Budgets and spend of these agents; an agent that is missing in the answer has no budget and has spent nothing. */
  budgetOf(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, AgentBudget>>
  /** Sets the monthly cap; null clears it. */
  setBudget(orgId: number, agentId: number, capUinr: bigint | null): Promise<void>
}

/** An agent as clients see it. */
export interface AgentView {
  readonly id: number
  readonly name: string
  readonly status: AgentStatus
  readonly monthly_budget_inr: number | null
  readonly spend_month_inr: number
  readonly may_delegate: boolean
  readonly created_at: string
}

/** The agent that a label means. */
export interface LabelledAgent extends AgentWithAncestors {
  /** What its owner rules for its calls, or null. */
  readonly policy: CallPolicy | null
}

const labelsCachedMax = 50_000
/** Agents that one list shows at most, active ones first. */
const agentsListedMax = 1_000
/** A name can be taken and revoked between two statements; more often than this it is not bad luck any more. */
const createAttemptsMax = 5
/** Generations of children are at most 3, and each pass sees what was committed while the one before it waited. */
const revokePassesMax = 8
/** Largest budget: below it rupees and micro-rupees convert both ways without loss. */
const budgetInrMax = 1_000_000_000
const int4Max = 2 ** 31 - 1
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
const nameShape = /^[^\u0000-\u001f\u007f-\u009f]{1,100}$/u

/** Agent identities: made by name, listed with their budgets, revoked with all below them. Tokens, signing keys and the kill switch hang on it. */
export class Agents {
  readonly #deps: AgentsDeps
  readonly #byLabel: ExpiringCache<string, LabelledAgent>
  readonly killSwitch: KillSwitch
  readonly signingKeys: SigningKeys
  readonly tokens: AgentTokens

  constructor(deps: AgentsDeps) {
    this.#deps = deps
    const tokenTtlMs = deps.tokenTtlSeconds * 1000
    this.killSwitch = new KillSwitch({ ...deps, tokenTtlMs })
    this.signingKeys = new SigningKeys({ ...deps, tokenTtlMs })
    this.tokens = new AgentTokens({ ...deps, ttlSeconds: deps.tokenTtlSeconds, signingKeys: this.signingKeys, killSwitch: this.killSwitch })
    this.#byLabel = new ExpiringCache({ max: labelsCachedMax, ttlMs: deps.cacheTtlMs, clock: deps.clock, load: key => this.#loadLabel(key) })
    deps.controlLog.on(news => {
      if (news.kind === 'agent_revoked') this.#byLabel.clear()
    })
    deps.controlLog.onGap(() => this.#byLabel.clear())
  }

  /** To be called after the control log has started. */
  async start(): Promise<void> {
    await this.killSwitch.start()
  }

  stop(): void {
    this.killSwitch.stop()
  }

  /**
   * The active agent of that name, made when there is none; however many ask at once, there is one. A revoked agent's name makes a
   * new identity. `mayDelegate`, when given, is set on a reused agent too. Throws `bad_name`.
   */
  async createOrReuse(principal: Principal, wishedName: string, options: { mayDelegate?: boolean } = {}): Promise<{ agent: AgentView; isNew: boolean }> {
    const name = wishedName.trim()
    if (!nameShape.test(name)) throw fail('bad_name')
    const { db, clock } = this.#deps
    const { orgId, userId } = principal
    const keyId = principal.kind === 'session' ? null : principal.keyId
    for (let attempt = 0; attempt < createAttemptsMax; attempt++) {
      const made = await db.maybe(insertAgent, orgId, name, options.mayDelegate ?? false, keyId, userId, new Date(clock.nowMs()))
      if (made !== null) {
        this.#byLabel.invalidate(labelKey(orgId, name))
        this.#byLabel.invalidate(labelKey(orgId, String(made.id)))
        return { agent: await this.#view(orgId, made), isNew: true }
      }
      const found = await db.maybe(reuseAgent, orgId, name, options.mayDelegate ?? null)
      if (found !== null) return { agent: await this.#view(orgId, found), isNew: false }
    }
    throw new Error('an agent name was made and revoked over and over while it was being created')
  }

  /** The org's agents with their budgets: active ones first, newest first, at most 1,000. */
  async list(orgId: number): Promise<AgentView[]> {
    return this.#views(orgId, await this.#deps.db.many(listAgents, orgId, agentsListedMax))
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

  /** Sets the monthly budget in rupees; null or 0 clears it. Throws `bad_request`, `not_found` and, for a revoked agent, 409 `agent_revoked`. */
  async setBudget(orgId: number, agentId: number, monthlyBudgetInr: number | null): Promise<AgentView> {
    if (monthlyBudgetInr !== null && !(monthlyBudgetInr >= 0 && monthlyBudgetInr <= budgetInrMax))
      throw fail('bad_request', { message: `monthly_budget_inr must be a number from 0 to ${budgetInrMax}, or null.` })
    const capUinr = monthlyBudgetInr === null || monthlyBudgetInr === 0 ? null : uinrFromInr(monthlyBudgetInr)
    if (capUinr === 0n) throw fail('bad_request', { message: 'monthly_budget_inr is below a millionth of a rupee. Send 0 or null to clear the budget.' })
    const row = await this.#deps.db.maybe(findAgent, orgId, agentId)
    if (row === null) throw noAgent()
    if (row.status === 'revoked') throw fail('agent_revoked')
    await this.#deps.setBudget(orgId, agentId, capUinr)
    return this.#view(orgId, row)
  }

  /** The agent that a label means, by id or exact name, or null. A revoked agent is found as long as no active one has the name. Synchronous when cached. */
  byLabel(orgId: number, label: string): LabelledAgent | null | Promise<LabelledAgent | null> {
    return this.#byLabel.get(labelKey(orgId, label))
  }

  /** Names by id, for reports. Ids of other organisations are left out. */
  async names(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    if (agentIds.length === 0) return new Map()
    const rows = await this.#deps.db.many(namesOf, orgId, agentIds)
    return new Map(rows.map(row => [row.id, row.name]))
  }

  async #loadLabel(key: string): Promise<LabelledAgent | null> {
    const cut = key.indexOf(':')
    const label = key.slice(cut + 1)
    const found = await this.#deps.db.maybe(findByLabel, Number(key.slice(0, cut)), agentIdOf(label), label)
    return found === null ? null : { ...found, policy: null }
  }

  async #view(orgId: number, row: AgentRow): Promise<AgentView> {
    const budget = (await this.#deps.budgetOf(orgId, [row.id])).get(row.id)
    return viewOf(row, budget)
  }

  async #views(orgId: number, rows: readonly AgentRow[]): Promise<AgentView[]> {
    if (rows.length === 0) return []
    const budgets = await this.#deps.budgetOf(
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

/** The agent id that a text is, or null when it can be none. */
export function agentIdOf(text: string): number | null {
  if (!/^[1-9]\d{0,9}$/.test(text)) return null
  const id = Number(text)
  return id <= int4Max ? id : null
}

const noAgent = () => fail('not_found', { message: 'There is no such agent.' })

const labelKey = (orgId: number, label: string): string => `${orgId}:${label}`

function viewOf(row: AgentRow, budget: AgentBudget | undefined): AgentView {
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    monthly_budget_inr: budget === undefined || budget.capUinr === null ? null : inrFromUinr(budget.capUinr),
    spend_month_inr: inrFromUinr(budget?.spendMonthUinr ?? 0n),
    may_delegate: row.mayDelegate,
    created_at: row.createdAt.toISOString(),
  }
}
