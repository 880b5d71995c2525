/**
 * Decides who may change which limit of an agent. Every full key may tighten a limit. Only the people who answer for the agent may loosen it.
 * Decision 0402 says why.
 */
import { fail, type GatewayError } from '../platform/errors.ts'
import type { AgentPrincipal, Principal } from '../platform/security/principal.ts'
import { type AgentParams, looser } from './agent-rules.ts'
import type { AgentRow, PausedBy } from './queries.ts'

/** The actor: a caller, or the operator on the machine. */
export type Actor = Principal | 'operator'

/** The names of the limits, as the database and clients have them. */
const ruleNames = {
  mayDelegate: 'may_delegate',
  allowedModels: 'allowed_models',
  allowedProviders: 'allowed_providers',
  maxCostUinr: 'max_cost_inr_per_call',
  maxOutputTokens: 'max_output_tokens',
  maxConcurrency: 'max_concurrency',
  tpmLimit: 'tpm_limit',
  allowedTools: 'allowed_tools',
  run: 'run',
} as const
type RuleField = keyof typeof ruleNames
export type LimitName = (typeof ruleNames)[RuleField] | 'budget'
const ruleFields = Object.keys(ruleNames) as RuleField[]

/**
 * Returns whether the actor is an owner, an admin or the operator. A full key without a user counts as an admin too, because only the operator
 * creates such a key. An agent never counts as an admin.
 */
export function isAdmin(actor: Actor): boolean {
  if (actor === 'operator') return true
  if (actor.kind === 'agent') return false
  return actor.role === 'owner' || actor.role === 'admin' || (actor.kind === 'key' && actor.userId === null)
}

const isOwner = (actor: Actor, agent: Pick<AgentRow, 'ownerUser'>): boolean =>
  actor !== 'operator' && actor.kind !== 'agent' && actor.userId !== null && actor.userId === agent.ownerUser

/**
 * Returns whether the person whose key minted the token of an agent answers for an agent below it. An owner or admin answers for every agent. Another
 * person answers for it if they own one of the two agents. Every full key mints tokens of every agent, so a token gives a person no more rights
 * than the key does.
 */
function answersBelow(actor: AgentPrincipal, self: Pick<AgentRow, 'ownerUser'>, below: Pick<AgentRow, 'ownerUser'>): boolean {
  const { userId, role } = actor
  return userId === null || role === 'owner' || role === 'admin' || [self, below].some(agent => agent.ownerUser === userId)
}

/** Checks the person whose key minted the token of the agent `self`. Throws `forbidden` unless that person may loosen limits of the agent below it. */
export function checkBelow(actor: AgentPrincipal, self: AgentRow, below: AgentRow): void {
  if (answersBelow(actor, self, below)) return
  throw fail('forbidden', {
    message: `A member's key minted this token, and that member owns neither agent ${self.id} nor agent ${below.id}. Such a token may pause an agent below it and lower its limits, and may not end, raise or resume it. Use a token that was minted by an owner or admin of the organisation, or by the owner of one of the two agents.`,
  })
}

/**
 * Throws `forbidden` unless the actor may act on the agent at all. At the console, a plain member acts only on agents that they own. Keys have no such
 * limit: every full key may tighten. Decision 0570 says why.
 */
export function checkActing(actor: Actor, agent: Pick<AgentRow, 'id' | 'ownerUser'>): void {
  if (actor === 'operator' || actor.kind !== 'session' || isAdmin(actor) || isOwner(actor, agent)) return
  throw fail('forbidden', { message: `Agent ${agent.id} is not yours. Its owner, and the owners and admins of the organisation, act on it.` })
}

const pauserRank: Record<PausedBy, number> = { agent: 0, member: 1, admin: 2 }

/** The rank of the actor who paused an agent. */
export type Pauser = Pick<AgentRow, 'pausedBy' | 'pausedByDepth'>

/** The state of an agent that is not paused. */
export const noPauser: Pauser = { pausedBy: null, pausedByDepth: null }

/**
 * Returns the rank with which the actor pauses an agent, or the present rank if that is higher. An admin ranks above a member, and a member ranks
 * above the agents of the family. In a family, an agent further up ranks above the agents below it. `self` is the row of an actor that is an agent.
 */
export function strongerPauser({ pausedBy, pausedByDepth }: Pauser, actor: Actor, self: AgentRow | null): Pauser {
  const now = isAdmin(actor) ? 'admin' : self === null ? 'member' : 'agent'
  if (pausedBy !== null && pauserRank[pausedBy] > pauserRank[now]) return { pausedBy, pausedByDepth }
  if (self === null) return { pausedBy: now, pausedByDepth: null }
  return { pausedBy: now, pausedByDepth: pausedBy === now && pausedByDepth !== null ? Math.min(pausedByDepth, self.depth) : self.depth }
}

/** Returns the limits of an agent that a request loosens. */
export function loosened(params: AgentParams, now: AgentRow): LimitName[] {
  return ruleFields.filter(field => params[field] !== undefined && looser({ [field]: params[field] }, now) !== null).map(field => ruleNames[field])
}

/** Throws `forbidden` unless the actor may loosen these limits of the agent. */
export function checkLoosening(actor: Actor, agent: AgentRow, limits: readonly LimitName[]): void {
  const refusal = refusalOfLoosening(actor, agent, limits)
  if (refusal !== null) throw refusal
}

/** Returns the error for an actor who may not loosen these limits of the agent, otherwise null. */
export function refusalOfLoosening(actor: Actor, agent: AgentRow, limits: readonly LimitName[]): GatewayError | null {
  if (limits.length === 0 || isAdmin(actor)) return null
  if (!isOwner(actor, agent)) return notYours(agent, `${limits.join(', ')} may be tightened by every full key, and loosened`)
  const ruled = limits.find(limit => agent.adminSet.includes(limit))
  if (ruled === undefined) return null
  return fail('forbidden', {
    message: `${ruled} of agent ${agent.id} was set by an owner or admin of the organisation, and only they loosen it. You may tighten it.`,
  })
}

/** Throws `forbidden` unless the actor may end the agent. */
export function checkEnding(actor: Actor, agent: AgentRow): void {
  checkActing(actor, agent)
  if (!isAdmin(actor) && !isOwner(actor, agent)) throw notYours(agent, 'It may be paused by every full key, and ended')
}

/**
 * Throws `forbidden` when an actor who is not an admin ends an agent that an admin paused or limited. The check includes the agents that ended
 * together with the requested one. Without the check, the name would become free for a new agent without the limit.
 */
export function checkEnded(actor: Actor, ended: readonly { readonly id: number; readonly isRuledByAdmin: boolean }[]): void {
  const ruled = isAdmin(actor) ? undefined : ended.find(agent => agent.isRuledByAdmin)
  if (ruled === undefined) return
  throw fail('forbidden', {
    message: `An owner or admin of the organisation paused or limited agent ${ruled.id}, and only they end it. You may stop it: POST /v1/me/agents/${ruled.id}/pause.`,
  })
}

/** Throws `forbidden` unless the actor may resume a paused agent. `self` is the row of an actor that is an agent. */
export function checkResuming(actor: Actor, agent: AgentRow, self: AgentRow | null): void {
  if (isAdmin(actor)) return
  if (self !== null && actor !== 'operator' && actor.kind === 'agent') {
    checkFamilyResuming(actor, agent, self)
    return
  }
  if (agent.pausedBy !== 'admin' && isOwner(actor, agent)) return
  if (agent.pausedBy === 'admin')
    throw fail('forbidden', { message: `Agent ${agent.id} was paused by an owner or admin of the organisation, and only they resume it.` })
  throw notYours(agent, 'It may be resumed')
}

function checkFamilyResuming(actor: AgentPrincipal, agent: AgentRow, self: AgentRow): void {
  if (agent.pausedBy !== 'agent')
    throw fail('forbidden', { message: `Agent ${agent.id} was paused by a person. A full API key resumes it: POST /v1/me/agents/${agent.id}/resume.` })
  checkBelow(actor, self, agent)
  if (agent.pausedByDepth !== null && agent.pausedByDepth < self.depth)
    throw fail('forbidden', { message: `An agent above agent ${self.id} paused agent ${agent.id}, and only that agent, those above it and people resume it.` })
}

/** Returns the names of the limits that admins set, as they are after a change by the actor. A limit that an admin removes leaves the list. */
export function adminSetAfter(actor: Actor, agent: Pick<AgentRow, 'adminSet'>, changes: Readonly<Partial<Record<LimitName, boolean>>>): readonly string[] {
  if (!isAdmin(actor)) return agent.adminSet
  const set = new Set<string>(agent.adminSet)
  for (const [limit, isSet] of Object.entries(changes)) {
    if (isSet) set.add(limit)
    else set.delete(limit)
  }
  return [...set].sort()
}

/** Returns the limits that a request names. The value is true for a limit that the request sets, and false for a limit that it removes. */
export function changesOf(params: AgentParams): Partial<Record<LimitName, boolean>> {
  const named = ruleFields.filter(field => params[field] !== undefined)
  return Object.fromEntries(named.map(field => [ruleNames[field], field === 'mayDelegate' ? params.mayDelegate === false : params[field] !== null]))
}

/** Returns the names of the limits of a new agent that only admins may loosen. */
export function adminSetOfNew(actor: Actor, params: AgentParams, hasBudget = false): readonly string[] {
  const set = Object.entries({ ...changesOf(params), budget: hasBudget }).filter(([, isSet]) => isSet)
  return adminSetAfter(actor, { adminSet: [] }, Object.fromEntries(set))
}

function notYours(agent: AgentRow, what: string): GatewayError {
  return fail('forbidden', { message: `Agent ${agent.id} is not yours. ${what} by its owner and by the owners and admins of the organisation.` })
}
