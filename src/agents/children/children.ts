/** Creates agents for agents. A child never has more rights than its parent. Decision 0190 says why. */

import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { type AgentPrincipal, lacksScope, type Principal, type SessionPrincipal } from '../../platform/security/principal.ts'
import { capsText } from '../../platform/security/run-caps.ts'
import { formsOfName } from '../../platform/values/clean-name.ts'
import { type AgentBudgets, isMore } from '../agent-budgets.ts'
import { type AgentParams, beyond, isAsRequested, looser } from '../agent-rules.ts'
import { adminSetOfNew, checkActing, checkBelow } from '../authority.ts'
import { type AgentRow, findActiveByName, findAgents, findWithAncestors, insertAgent, lockAgent, setAgentRules } from '../queries.ts'
import type { AgentTokens, MintedToken, TokenParams } from '../tokens/agent-tokens.ts'
import { viaOf } from '../tokens/token-claims.ts'
import { noAgent, refused } from '../tokens/token-refusal.ts'
import { narrowedScopes } from '../tokens/token-scopes.ts'
import { activeChildIds } from './child-queries.ts'

export interface ChildrenDeps {
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly tokens: AgentTokens
  readonly agentBudgets: AgentBudgets
  /** Is called for every new agent. */
  made(orgId: number, row: AgentRow): void
  /** Throws `org_limit_reached` when the organisation may not have one more agent. */
  readonly allowOneMore?: ((tx: Tx, orgId: number) => Promise<void>) | undefined
}

/** A parent's request for a child. */
export interface ChildParams {
  readonly name: string
  readonly rules: AgentParams
  /** The monthly cap. Null means no cap of its own. Undefined means that the cap does not change. */
  readonly capUinr: bigint | null | undefined
  readonly token: TokenParams
}

export interface MadeChild {
  readonly agent: AgentRow
  readonly token: MintedToken
  readonly isNew: boolean
}

/** Maximum number of generations below an agent that a person created. */
const generationsMax = 3
/** Maximum number of active children of one agent. */
const childrenMax = 1_000
/**
 * Maximum number of tries to create a child. A try fails when another request creates or revokes an agent of that name between two statements. After
 * this many failures, chance is not the cause.
 */
const attemptsMax = 5

/** Who creates a child: an agent with its key, or a person without one. */
interface Maker {
  readonly orgId: number
  readonly userId: number | null
  readonly keyId: number | null
  readonly adminSet: readonly string[]
}

interface Made {
  readonly agent: AgentRow
  readonly isNew: boolean
  readonly news: readonly NewsItem[]
}

/**
 * Creates children. A child never exceeds what its parent has: the scopes and the life of the requesting token, the rules of all agents above, and
 * the parent's budget. The parent's row is locked while a child is created. If a revocation of the parent comes first, the child is not created. A
 * later revocation ends the child too.
 */
export class Children {
  readonly #deps: ChildrenDeps

  constructor(deps: ChildrenDeps) {
    this.#deps = deps
  }

  /**
   * Returns the active child of that name with a new token, and creates the child when there is none. The rights of an existing child can only
   * shrink. Its budget can only change within the parent's budget. A token without the scope `inference` cannot change rights or budget. Throws
   * `forbidden`, `bad_name`, `bad_request`, `agent_name_taken`, `budget_not_available`, `cap` and, when the parent was revoked meanwhile, 401.
   */
  async create(principal: Principal, agentId: number, params: ChildParams): Promise<MadeChild> {
    const { controlLog, tokens } = this.#deps
    const parent = itself(principal, agentId)
    const forms = formsOfName(params.name)
    const grant = {
      orgId: parent.orgId,
      userId: parent.userId,
      keyId: parent.keyId,
      scopes: narrowedScopes(params.token.scope, parent.scopes),
      // The revocation of the requesting token ends this token too.
      via: viaOf(parent),
      ttlSeconds: tokens.lifeOf(params.token.ttlSeconds, parent.lifeSeconds),
      runId: parent.runId,
    }
    const { agent, isNew } = await controlLog.change(async tx => {
      const made = await this.#createIn(tx, parent, forms, params)
      return { value: made, news: made.news }
    })
    if (isNew) this.#deps.made(parent.orgId, agent)
    return { agent, isNew, token: await tokens.issue({ ...grant, agent: await tokens.agentToMint(parent.orgId, agent.id) }) }
  }

  /**
   * Creates a child for a person, who owns the parent or is an owner or admin of the organisation. The child stays within its family, as every child
   * does. A parent need not have `may_delegate`, because that is a right of the agent. Throws `forbidden`, `not_found`, `agent_revoked` (409), `bad_name`,
   * `agent_name_taken`, `budget_not_available` and `cap`.
   */
  async createByPerson(person: SessionPrincipal, parentId: number, params: Omit<ChildParams, 'token'>): Promise<AgentRow> {
    const { orgId, userId } = person
    const forms = formsOfName(params.name)
    const [name = ''] = forms
    const agent = await this.#deps.controlLog.change(async tx => {
      const self = await tx.maybe(lockAgent, orgId, parentId)
      if (self === null) throw noAgent()
      checkActing(person, self)
      if (self.status === 'revoked') throw fail('agent_revoked')
      if (self.playgroundUser !== null) throw fail('forbidden', { message: 'A playground agent has no children.' })
      const { ancestorIds } = await tx.one(findWithAncestors, orgId, parentId)
      checkBounds([self, ...(ancestorIds.length === 0 ? [] : await tx.many(findAgents, orgId, ancestorIds))], params.rules)
      const isTaken = (await tx.maybe(findActiveByName, orgId, forms)) !== null
      const hasCap = params.capUinr !== undefined && params.capUinr !== null
      const maker = { orgId, userId, keyId: null, adminSet: adminSetOfNew(person, params.rules, hasCap) }
      const made = isTaken ? null : await this.#insert(tx, maker, self, name, params)
      if (made === null) throw fail('agent_name_taken')
      return { value: made.agent, news: made.news }
    })
    this.#deps.made(orgId, agent)
    return agent
  }

  async #createIn(tx: Tx, parent: AgentPrincipal, forms: readonly string[], params: ChildParams): Promise<Made> {
    const { orgId, agentId, ancestorIds } = parent
    const [name = ''] = forms
    const self = await tx.maybe(lockAgent, orgId, agentId)
    if (self === null || self.status === 'revoked') throw refused('agent_revoked')
    checkFamily([self, ...(ancestorIds.length === 0 ? [] : await tx.many(findAgents, orgId, ancestorIds))], params.rules)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = await tx.maybe(findActiveByName, orgId, forms)
      // Rows of a family are locked from the top. This check comes before the lock, because an agent found elsewhere may be above this agent.
      if (found !== null && found.parentId !== agentId) throw fail('agent_name_taken')
      const child = found === null ? null : await tx.maybe(lockAgent, orgId, found.id)
      const made = child === null ? await this.#insert(tx, { ...parent, adminSet: [] }, self, name, params) : await this.#reuse(tx, parent, self, child, params)
      if (made !== null) return made
    }
    throw new Error('a name was made and revoked over and over while a child was being created')
  }

  /** Creates the child. Returns null when the name was taken meanwhile. */
  async #insert(tx: Tx, maker: Maker, self: AgentRow, name: string, { rules, capUinr }: Pick<ChildParams, 'rules' | 'capUinr'>): Promise<Made | null> {
    const { orgId, keyId, userId } = maker
    if ((await tx.many(activeChildIds, orgId, self.id)).length >= childrenMax)
      throw fail('cap', { message: `An agent has at most ${childrenMax} active children. Use one again by its name, or let the owner revoke some.` })
    await this.#deps.allowOneMore?.(tx, orgId)
    const agent = await tx.maybe(
      insertAgent,
      orgId,
      name,
      rules.mayDelegate ?? false,
      keyId,
      userId,
      new Date(this.#deps.clock.nowMs()),
      rules.allowedModels ?? null,
      rules.allowedProviders ?? null,
      rules.maxCostUinr ?? null,
      rules.maxOutputTokens ?? null,
      rules.maxConcurrency ?? null,
      self.id,
      self.depth + 1,
      maker.adminSet,
      rules.allowedTools ?? null,
      null,
      rules.tpmLimit ?? null,
    )
    if (agent === null) return null
    return { agent, isNew: true, news: await this.#deps.agentBudgets.setIn(tx, orgId, agent, capUinr ?? null) }
  }

  /** Changes an existing child. Returns null when the child was revoked meanwhile. */
  async #reuse(tx: Tx, parent: AgentPrincipal, self: AgentRow, child: AgentRow, params: ChildParams): Promise<Made | null> {
    const { orgId } = parent
    const { rules, capUinr } = params
    if (child.status === 'revoked') return null
    if (!parent.scopes.includes('inference')) await this.#checkUnchanged(tx, parent, child, params)
    const loose = looser(rules, child)
    if (loose !== null)
      throw fail('forbidden', { message: `${loose} in what is ruled for this child now. A full API key loosens it with PATCH /v1/me/agents/${child.id}.` })
    if (capUinr !== undefined && isMore(capUinr, await this.#deps.agentBudgets.capIn(tx, orgId, child.id))) checkRaising(parent, self, child)
    const news: NewsItem[] = []
    if (capUinr !== undefined) news.push(...(await this.#deps.agentBudgets.setIn(tx, orgId, child, capUinr)))
    if (isAsRequested(child, rules)) return { agent: child, isNew: false, news }
    const { id, mayDelegate, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency, tpmLimit, allowedTools } = { ...child, ...rules }
    const agent = await tx.one(
      setAgentRules,
      orgId,
      id,
      mayDelegate,
      allowedModels,
      allowedProviders,
      maxCostUinr,
      maxOutputTokens,
      maxConcurrency,
      child.adminSet,
      allowedTools,
      capsText(child.runCaps),
      tpmLimit,
    )
    return { agent, isNew: false, news: [...news, { kind: 'agent_changed', ref: String(id) }] }
  }

  /**
   * Throws `forbidden` when the request changes an existing child. It is called for a token without a scope for model calls. Rules and budgets
   * control such calls, so the token cannot change them.
   */
  async #checkUnchanged(tx: Tx, parent: AgentPrincipal, child: AgentRow, { rules, capUinr }: ChildParams): Promise<void> {
    const isAsItWas = isAsRequested(child, rules) && (capUinr === undefined || capUinr === (await this.#deps.agentBudgets.capIn(tx, parent.orgId, child.id)))
    if (!isAsItWas) throw fail('forbidden', { message: `What is set for a child that is there stays as it is. ${lacksScope(parent, 'inference')}` })
  }
}

/** Returns the calling agent when the URL names that agent. Throws `forbidden` otherwise. */
export function itself(principal: Principal, agentId: number): AgentPrincipal {
  if (principal.kind === 'agent' && principal.agentId === agentId) return principal
  throw fail('forbidden', {
    message: 'An agent makes and stops agents of its own alone: call this with a token of the agent in the address. GET /v1/me/whoami says its id.',
  })
}

/** Throws `forbidden` unless the parent may raise the budget of its child. */
function checkRaising(parent: AgentPrincipal, self: AgentRow, child: AgentRow): void {
  checkBelow(parent, self, child)
  if (child.adminSet.includes('budget'))
    throw fail('forbidden', { message: `An owner or admin of the organisation set the budget of agent ${child.id}, and only they raise it.` })
}

/** Throws `forbidden` unless this family may get another child with these rules. The first member is the parent. */
function checkFamily(family: readonly AgentRow[], rules: AgentParams): void {
  const barred = family.find(member => !member.mayDelegate)
  if (barred !== undefined)
    throw fail('forbidden', {
      message: `Agent ${barred.id} may not delegate. A full API key allows it: PATCH /v1/me/agents/${barred.id} with {"may_delegate": true}.`,
    })
  checkBounds(family, rules)
}

/** Throws `forbidden` unless the family may get a child with these rules, whoever creates it. The first member is the parent. */
function checkBounds(family: readonly AgentRow[], rules: AgentParams): void {
  if (family.length > generationsMax)
    throw fail('forbidden', { message: `This agent is of generation ${generationsMax} below the one that a person made; children go no deeper.` })
  for (const member of family) {
    const wide = beyond(rules, member)
    if (wide !== null) throw fail('forbidden', { message: `${wide}, which is ruled for agent ${member.id}. A child gets no more than its parents have.` })
  }
}
