/** Agents that agents make: children, who may never more than their parents. Decision 0190 says why. */

import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { type AgentPrincipal, lacksScope, type Principal } from '../../platform/security/principal.ts'
import { formsOfName } from '../../platform/values/clean-name.ts'
import { type AgentBudgets, isMore } from '../agent-budgets.ts'
import { type AgentParams, beyond, isAsRequested, looser } from '../agent-rules.ts'
import { checkBelow } from '../authority.ts'
import { type AgentRow, findActiveByName, findAgents, insertAgent, lockAgent, setAgentRules } from '../queries.ts'
import type { AgentTokens, MintedToken, TokenParams } from '../tokens/agent-tokens.ts'
import { viaOf } from '../tokens/token-claims.ts'
import { refused } from '../tokens/token-refusal.ts'
import { narrowedScopes } from '../tokens/token-scopes.ts'
import { activeChildIds } from './child-queries.ts'

export interface ChildrenDeps {
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly tokens: AgentTokens
  readonly agentBudgets: AgentBudgets
  /** Told of every new agent. */
  made(orgId: number, row: AgentRow): void
  /** Makes sure that the organisation may have one more agent; throws `org_limit_reached`. */
  readonly allowOneMore?: ((tx: Tx, orgId: number) => Promise<void>) | undefined
}

/** What an agent requests for a child. */
export interface ChildParams {
  readonly name: string
  readonly rules: AgentParams
  /** Monthly cap; null: none of its own; undefined: as it is. */
  readonly capUinr: bigint | null | undefined
  readonly token: TokenParams
}

export interface MadeChild {
  readonly agent: AgentRow
  readonly token: MintedToken
  readonly isNew: boolean
}

/** Generations below an agent that a person made. */
const generationsMax = 3
/** Active children of one agent. */
const childrenMax = 1_000
/** A name can be taken and revoked between two statements; more often than this it is not bad luck any more. */
const attemptsMax = 5

interface Made {
  readonly agent: AgentRow
  readonly isNew: boolean
  readonly news: readonly NewsItem[]
}

/**
 * Makes children. Everything of a child is within what its parent has: the scopes and the life of the token that asks, the rules of all
 * above, the parent's budget. The parent's row is held while a child is made, so that a revoke comes before it, and the child is not made, or after
 * it, and finds the child.
 */
export class Children {
  readonly #deps: ChildrenDeps

  constructor(deps: ChildrenDeps) {
    this.#deps = deps
  }

  /**
   * The active child of that name with a new token, made when there is none. On a child that is there rights only shrink; its budget
   * moves within the parent's; a token without the scope inference changes neither. Throws `forbidden`, `bad_name`, `bad_request`, `agent_name_taken`, `budget_not_available`, `cap` and,
   * when the parent was revoked meanwhile, 401.
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
      // Revoking the token that asked for it ends this one too.
      via: viaOf(parent),
      ttlSeconds: tokens.lifeOf(params.token.ttlSeconds, parent.lifeSeconds),
    }
    const { agent, isNew } = await controlLog.change(async tx => {
      const made = await this.#createIn(tx, parent, forms, params)
      return { value: made, news: made.news }
    })
    if (isNew) this.#deps.made(parent.orgId, agent)
    return { agent, isNew, token: await tokens.issue({ ...grant, agent: await tokens.agentToMint(parent.orgId, agent.id) }) }
  }

  async #createIn(tx: Tx, parent: AgentPrincipal, forms: readonly string[], params: ChildParams): Promise<Made> {
    const { orgId, agentId, ancestorIds } = parent
    const [name = ''] = forms
    const self = await tx.maybe(lockAgent, orgId, agentId)
    if (self === null || self.status === 'revoked') throw refused('agent_revoked')
    checkFamily([self, ...(ancestorIds.length === 0 ? [] : await tx.many(findAgents, orgId, ancestorIds))], params.rules)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = await tx.maybe(findActiveByName, orgId, forms)
      // Before it is locked: rows of a family are locked from the top, and this one may stand above.
      if (found !== null && found.parentId !== agentId) throw fail('agent_name_taken')
      const child = found === null ? null : await tx.maybe(lockAgent, orgId, found.id)
      const made = child === null ? await this.#insert(tx, parent, self, name, params) : await this.#reuse(tx, parent, self, child, params)
      if (made !== null) return made
    }
    throw new Error('a name was made and revoked over and over while a child was being created')
  }

  /** Null: the name was taken meanwhile. */
  async #insert(tx: Tx, { orgId, keyId, userId }: AgentPrincipal, self: AgentRow, name: string, { rules, capUinr }: ChildParams): Promise<Made | null> {
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
      [],
    )
    if (agent === null) return null
    return { agent, isNew: true, news: await this.#deps.agentBudgets.setIn(tx, orgId, agent, capUinr ?? null) }
  }

  /** Null: it was revoked meanwhile. */
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
    const { id, mayDelegate, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency } = { ...child, ...rules }
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
    )
    return { agent, isNew: false, news: [...news, { kind: 'agent_changed', ref: String(id) }] }
  }

  /** Rules and budgets are about calls of models: what is good for none of them cannot bend the work of a child that is there. */
  async #checkUnchanged(tx: Tx, parent: AgentPrincipal, child: AgentRow, { rules, capUinr }: ChildParams): Promise<void> {
    const isAsItWas = isAsRequested(child, rules) && (capUinr === undefined || capUinr === (await this.#deps.agentBudgets.capIn(tx, parent.orgId, child.id)))
    if (!isAsItWas) throw fail('forbidden', { message: `What is set for a child that is there stays as it is. ${lacksScope(parent, 'inference')}` })
  }
}

/** The agent that asks, when it is the one that the address names. Throws `forbidden`. */
export function itself(principal: Principal, agentId: number): AgentPrincipal {
  if (principal.kind === 'agent' && principal.agentId === agentId) return principal
  throw fail('forbidden', {
    message: 'An agent makes and stops agents of its own alone: call this with a token of the agent in the address. GET /v1/me/whoami says its id.',
  })
}

/** Whether the parent may raise the budget of its child. Throws `forbidden`. */
function checkRaising(parent: AgentPrincipal, self: AgentRow, child: AgentRow): void {
  checkBelow(parent, self, child)
  if (child.adminSet.includes('budget'))
    throw fail('forbidden', { message: `An owner or admin of the organisation set the budget of agent ${child.id}, and only they raise it.` })
}

/** Whether this family may grow by a child with these rules; the parent stands first. Throws `forbidden`. */
function checkFamily(family: readonly AgentRow[], rules: AgentParams): void {
  const barred = family.find(member => !member.mayDelegate)
  if (barred !== undefined)
    throw fail('forbidden', {
      message: `Agent ${barred.id} may not delegate. A full API key allows it: PATCH /v1/me/agents/${barred.id} with {"may_delegate": true}.`,
    })
  if (family.length > generationsMax)
    throw fail('forbidden', { message: `This agent is of generation ${generationsMax} below the one that a person made; children go no deeper.` })
  for (const member of family) {
    const wide = beyond(rules, member)
    if (wide !== null) throw fail('forbidden', { message: `${wide}, which is ruled for agent ${member.id}. A child gets no more than its parents have.` })
  }
}
