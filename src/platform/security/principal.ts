/** Who is calling, as every layer sees it, and the pure rule that decides whether a row may be called. */

export type Role = 'member' | 'admin' | 'owner'
export type Capability = 'usage:org:view' | 'cost:org:view' | 'audit:view'
export type KeyScope = 'full' | 'inference'

/** What agent tokens can be good for. A token is good for all of it unless its mint named less. */
export const agentScopes = ['inference', 'memory:read', 'memory:write', 'usage:read'] as const
export type AgentScope = (typeof agentScopes)[number]

/** The limits of an API key in its record; null = no limit. */
export interface KeyLimits {
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
}

/** What a call may be, as the owner of a key or agent has ruled. Null is no rule. */
export interface CallPolicy {
  readonly owner: 'key' | 'agent'
  readonly ownerId: number
  /** Catalog ids, virtual ids and `provider/model` ids. */
  readonly allowedModels: readonly string[] | null
  /** Provider ids and `byoe:<slug>`. */
  readonly allowedProviders: readonly string[] | null
  /** Most that one call may cost in the worst case, in micro-rupees. */
  readonly maxCostUinr: bigint | null
  /** Most output tokens of one call, reasoning included. */
  readonly maxOutputTokens: number | null
  /** Most concurrent calls, over all processes; a stream counts until it ends. */
  readonly maxConcurrency: number | null
}

interface Common {
  readonly orgId: number
  /** The user of the credential; null for a key that no user backs. */
  readonly userId: number | null
  /** The role of that user in the org today; null without a user. */
  readonly role: Role | null
  /** What that user may see beyond the role. */
  readonly capabilities: readonly Capability[]
}

export interface KeyPrincipal extends Common {
  readonly kind: 'key'
  readonly keyId: number
  readonly keyName: string
  readonly scope: KeyScope
  readonly workspaceId: number | null
  readonly limits: KeyLimits
  /** A trial key: free on the platform's models in India, nothing else on the platform's account. Absent: what the platform pays for is debited where billing is on. */
  readonly isTrial?: boolean
  /** All of them apply; empty when there are no rules. */
  readonly policies: readonly CallPolicy[]
}

/** An agent token. `keyId`, `workspaceId` and `limits` are those of the key that minted it: they bind the token too. */
export interface AgentPrincipal extends Common {
  readonly kind: 'agent'
  readonly agentId: number
  readonly agentName: string
  /** At most 3, nearest first: a call of a child counts in all of them. */
  readonly ancestorIds: readonly number[]
  readonly epoch: number
  /** The id of the token, then of what it was made of: each of them can be revoked. */
  readonly tokenIds: readonly string[]
  readonly keyId: number
  readonly keyName: string
  /** What this token is good for, in the order of `agentScopes`. */
  readonly scopes: readonly AgentScope[]
  readonly workspaceId: number | null
  readonly limits: KeyLimits
  /** The minting key is a trial key. */
  readonly isTrial?: boolean
  /** Those of the minting key, of the agent and of every agent above it. */
  readonly policies: readonly CallPolicy[]
  /** Unix milliseconds at which the token ends. */
  readonly expiresAtMs: number
  /** For how long the token was given: no token of a child gets more. */
  readonly lifeSeconds: number
}

export interface SessionPrincipal extends Common {
  readonly kind: 'session'
  readonly userId: number
  readonly role: Role
  readonly email: string
  /** Which session it is: base64 of the hash of the cookie's id. */
  readonly sessionId: string
}

export type Principal = KeyPrincipal | AgentPrincipal | SessionPrincipal
/** A caller with a bearer credential. */
export type BearerPrincipal = KeyPrincipal | AgentPrincipal

/** What a row asks of its caller beyond the kind of credential. Every row writes one; `{}` means any credential of that kind. */
export interface AccessRule {
  /** 'full': an API key of scope full. Agent tokens count as inference-scoped. */
  readonly scope?: 'full'
  /** What an agent token must be good for. A row that names none takes every agent token. */
  readonly agentScope?: AgentScope
  /** The least role of the user of the credential. A key without a user has none. */
  readonly role?: 'admin' | 'owner'
  /** With `role`: a holder of one of these capabilities passes too. */
  readonly orCapability?: readonly Capability[]
  /** Only credentials that have a user. */
  readonly userBacked?: true
  /** Only agent tokens. */
  readonly agentOnly?: true
  /** No agent tokens, whoever let the agent act. */
  readonly noAgents?: true
}

const rank: Record<Role, number> = { member: 0, admin: 1, owner: 2 }

/** What an agent reads whose token is good for less than it asks. */
export function lacksScope({ scopes }: AgentPrincipal, missing: AgentScope): string {
  return `This needs the scope ${missing}; this agent token has ${scopes.join(' ')}. Ask for a token with that scope.`
}

/**
 * Whether a key may act in the name of an agent of its organisation that this user made, so that what it calls counts as the agent's: every full key may,
 * because it mints tokens of every agent; so may keys of owners, admins and of nobody, which the operator made. Decision 0463 says why.
 */
export function mayActFor({ scope, userId, role }: Pick<KeyPrincipal, 'scope' | 'userId' | 'role'>, createdByUser: number | null): boolean {
  return scope === 'full' || userId === null || role === 'owner' || role === 'admin' || userId === createdByUser
}

/** Whether the principal may call a row with this rule. Pure; the reason is for the error message. */
export function mayCall(principal: Principal, rule: AccessRule): { ok: true } | { ok: false; why: string } {
  if (rule.agentOnly && principal.kind !== 'agent') return { ok: false, why: 'This endpoint takes an agent token.' }
  if (rule.noAgents && principal.kind === 'agent') return { ok: false, why: 'Agent tokens may not do this; it needs an API key or a session of a person.' }
  if (rule.scope === 'full' && (principal.kind === 'agent' || (principal.kind === 'key' && principal.scope !== 'full')))
    return { ok: false, why: 'This needs an API key of scope full; agent tokens and inference-scoped keys may not do it.' }
  if (rule.agentScope !== undefined && principal.kind === 'agent' && !principal.scopes.includes(rule.agentScope))
    return { ok: false, why: lacksScope(principal, rule.agentScope) }
  if (rule.userBacked && principal.userId === null) return { ok: false, why: 'This needs a key that belongs to a user.' }
  const isEntitled = rule.orCapability?.some(capability => principal.capabilities.includes(capability)) ?? false
  if (rule.role && !isEntitled && (principal.role === null || rank[principal.role] < rank[rule.role]))
    return {
      ok: false,
      why: `This needs the role ${[rule.role === 'owner' ? 'owner' : 'owner or admin', ...(rule.orCapability ?? [])].join(', or the capability ')}.`,
    }
  return { ok: true }
}
