/** Who may change what of an agent: anybody with a full key tightens, and loosening is for those who may answer for it. Decision 0402 says why. */
import { fail, type GatewayError } from '../platform/errors.ts'
import type { AgentPrincipal, Principal } from '../platform/security/principal.ts'
import { type AgentParams, looser } from './agent-rules.ts'
import type { AgentRow, PausedBy } from './queries.ts'

/** Whoever acts: a caller, or the operator at the machine itself. */
export type Actor = Principal | 'operator'

/** The names of the limits as they are kept and as clients know them. */
const ruleNames = {
  mayDelegate: 'may_delegate',
  allowedModels: 'allowed_models',
  allowedProviders: 'allowed_providers',
  maxCostUinr: 'max_cost_inr_per_call',
  maxOutputTokens: 'max_output_tokens',
  maxConcurrency: 'max_concurrency',
} as const
type RuleField = keyof typeof ruleNames
export type LimitName = (typeof ruleNames)[RuleField] | 'budget'
const ruleFields = Object.keys(ruleNames) as RuleField[]

/** Owners, admins and the operator. A full key that nobody stands behind is made by the operator alone. An agent is never one, whoever let it act. */
export function isAdmin(actor: Actor): boolean {
  if (actor === 'operator') return true
  if (actor.kind === 'agent') return false
  return actor.role === 'owner' || actor.role === 'admin' || (actor.kind === 'key' && actor.userId === null)
}

const isOwner = (actor: Actor, agent: Pick<AgentRow, 'createdByUser'>): boolean =>
  actor !== 'operator' && actor.kind !== 'agent' && actor.userId !== null && actor.userId === agent.createdByUser

/**
 * Whether the person whose key is behind the token of an agent answers for an agent below it: an owner or admin, or whoever made one of the two.
 * Every full key mints tokens of every agent, so the token alone gives nobody more than their key does.
 */
function answersBelow(actor: AgentPrincipal, self: Pick<AgentRow, 'createdByUser'>, below: Pick<AgentRow, 'createdByUser'>): boolean {
  const { userId, role } = actor
  return userId === null || role === 'owner' || role === 'admin' || [self, below].some(agent => agent.createdByUser === userId)
}

/** Throws `forbidden` unless the person behind the token of the agent `self` may do more than tighten an agent below it. */
export function checkBelow(actor: AgentPrincipal, self: AgentRow, below: AgentRow): void {
  if (answersBelow(actor, self, below)) return
  throw fail('forbidden', {
    message: `A member's key minted this token, and that member made neither agent ${self.id} nor agent ${below.id}. Such a token may pause an agent below it and lower its limits, and may not end, raise or resume it. Use a token that an owner or admin minted, or whoever made one of the two agents.`,
  })
}

const pauserRank: Record<PausedBy, number> = { agent: 0, member: 1, admin: 2 }

/** As whom an agent is paused. */
export type Pauser = Pick<AgentRow, 'pausedBy' | 'pausedByDepth'>

/** Nobody has paused it. */
export const noPauser: Pauser = { pausedBy: null, pausedByDepth: null }

/**
 * As whom an agent is paused when the actor pauses it, too: the word of an admin stands above that of a member, theirs above that of its family, and
 * in a family that of the agent further up. `self` is the row of an actor that is an agent itself.
 */
export function strongerPauser({ pausedBy, pausedByDepth }: Pauser, actor: Actor, self: AgentRow | null): Pauser {
  const now = isAdmin(actor) ? 'admin' : self === null ? 'member' : 'agent'
  if (pausedBy !== null && pauserRank[pausedBy] > pauserRank[now]) return { pausedBy, pausedByDepth }
  if (self === null) return { pausedBy: now, pausedByDepth: null }
  return { pausedBy: now, pausedByDepth: pausedBy === now && pausedByDepth !== null ? Math.min(pausedByDepth, self.depth) : self.depth }
}

/** Which limits of an agent a request loosens. */
export function loosened(params: AgentParams, now: AgentRow): LimitName[] {
  return ruleFields.filter(field => params[field] !== undefined && looser({ [field]: params[field] }, now) !== null).map(field => ruleNames[field])
}

/** Throws `forbidden` unless the actor may loosen these limits of the agent. */
export function checkLoosening(actor: Actor, agent: AgentRow, limits: readonly LimitName[]): void {
  if (limits.length === 0 || isAdmin(actor)) return
  if (!isOwner(actor, agent)) throw notYours(agent, `${limits.join(', ')} may be tightened by every full key, and loosened`)
  const ruled = limits.find(limit => agent.adminSet.includes(limit))
  if (ruled !== undefined)
    throw fail('forbidden', {
      message: `${ruled} of agent ${agent.id} was set by an owner or admin of the organisation, and only they loosen it. You may tighten it.`,
    })
}

/** Throws `forbidden` unless the actor may end the agent. */
export function checkEnding(actor: Actor, agent: AgentRow): void {
  if (!isAdmin(actor) && !isOwner(actor, agent)) throw notYours(agent, 'It may be paused by every full key, and ended')
}

/**
 * Throws `forbidden` when an actor who is no admin has ended an agent that an admin paused or limited, itself or below another: the name would be free
 * for a new agent without the limit.
 */
export function checkEnded(actor: Actor, ended: readonly { readonly id: number; readonly isRuledByAdmin: boolean }[]): void {
  const ruled = isAdmin(actor) ? undefined : ended.find(agent => agent.isRuledByAdmin)
  if (ruled === undefined) return
  throw fail('forbidden', {
    message: `An owner or admin of the organisation paused or limited agent ${ruled.id}, and only they end it. You may stop it: POST /v1/me/agents/${ruled.id}/pause.`,
  })
}

/** Throws `forbidden` unless the actor may let a paused agent go on; `self` is the row of an actor that is an agent itself. */
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

/** The limits that admins have set, when the actor has changed some: null lifts, and what an admin lifts is nobody's. */
export function adminSetAfter(actor: Actor, agent: Pick<AgentRow, 'adminSet'>, changes: Readonly<Partial<Record<LimitName, boolean>>>): readonly string[] {
  if (!isAdmin(actor)) return agent.adminSet
  const set = new Set<string>(agent.adminSet)
  for (const [limit, isSet] of Object.entries(changes)) {
    if (isSet) set.add(limit)
    else set.delete(limit)
  }
  return [...set].sort()
}

/** What a request sets (true) and lifts (false). */
export function changesOf(params: AgentParams): Partial<Record<LimitName, boolean>> {
  const named = ruleFields.filter(field => params[field] !== undefined)
  return Object.fromEntries(named.map(field => [ruleNames[field], field === 'mayDelegate' ? params.mayDelegate === false : params[field] !== null]))
}

function notYours(agent: AgentRow, what: string): GatewayError {
  return fail('forbidden', { message: `Agent ${agent.id} is not one that you made. ${what} by whoever made it and by owners and admins.` })
}
