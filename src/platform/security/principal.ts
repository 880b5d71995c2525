/** The caller of a request, and the pure function that decides whether a caller may use an endpoint. */
import type { RunCaps } from './run-caps.ts'

export type Role = 'member' | 'admin' | 'owner'
export type Capability = 'usage:org:view' | 'cost:org:view' | 'audit:view'
export type KeyScope = 'full' | 'inference'

/** The scopes of agent tokens. A token has all of them unless fewer were requested. */
export const agentScopes = ['inference', 'memory:read', 'memory:write', 'usage:read', 'tools:call'] as const
export type AgentScope = (typeof agentScopes)[number]

/** The limits of an API key. Null means no limit. */
export interface KeyLimits {
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
}

/** Rules that the owner of a key or agent sets for its calls. Null means no rule. */
export interface CallPolicy {
  readonly owner: 'key' | 'agent'
  readonly ownerId: number
  /** Catalog ids, virtual ids and `provider/model` ids. */
  readonly allowedModels: readonly string[] | null
  /** Provider ids and `byoe:<slug>`. */
  readonly allowedProviders: readonly string[] | null
  /** Highest possible cost of one call, in micro-rupees. */
  readonly maxCostUinr: bigint | null
  /** Maximum number of output tokens of one call, including reasoning. */
  readonly maxOutputTokens: number | null
  /** Maximum number of concurrent calls over all processes. A stream counts until it ends. */
  readonly maxConcurrency: number | null
  /** Maximum number of tokens in a clock minute over all processes. Null or absent: no limit. */
  readonly tpmLimit?: number | null
  /** Public names of tools of MCP servers, and `slug__*` for all tools of one. Null or absent: none. */
  readonly allowedTools?: readonly string[] | null
  /** The caps of each run. Absent: none. */
  readonly run?: RunCaps
}

interface Common {
  readonly orgId: number
  /** The user of the credential. Null for a key without a user. */
  readonly userId: number | null
  /** The user's present role in the organisation. Null without a user. */
  readonly role: Role | null
  /** What the user may see in addition to the role. */
  readonly capabilities: readonly Capability[]
}

export interface KeyPrincipal extends Common {
  readonly kind: 'key'
  readonly keyId: number
  readonly keyName: string
  readonly scope: KeyScope
  readonly workspaceId: number | null
  readonly limits: KeyLimits
  /**
   * True for a trial key. It may use the platform's provider keys only for models in India, and these calls are free for it. For other keys, calls on
   * platform keys are charged to the prepaid balance when billing is on.
   */
  readonly isTrial?: boolean
  /** All policies apply. Empty when there are none. */
  readonly policies: readonly CallPolicy[]
}

/** An agent token. `keyId`, `workspaceId` and `limits` are those of the key that minted it. They apply to the token too. */
export interface AgentPrincipal extends Common {
  readonly kind: 'agent'
  readonly agentId: number
  readonly agentName: string
  /** Ids of at most 3 ancestors, nearest first. A call of the agent also counts for all of these ancestors. */
  readonly ancestorIds: readonly number[]
  readonly epoch: number
  /** The id of the token, followed by the ids of the tokens from which it was made. A revoke of any of them ends this token. */
  readonly tokenIds: readonly string[]
  readonly keyId: number
  readonly keyName: string
  /** The scopes of this token, in the order of `agentScopes`. */
  readonly scopes: readonly AgentScope[]
  readonly workspaceId: number | null
  readonly limits: KeyLimits
  /** True when the minting key is a trial key. */
  readonly isTrial?: boolean
  /** The policies of the minting key, of the agent and of every ancestor. */
  readonly policies: readonly CallPolicy[]
  /** Unix milliseconds at which the token expires. */
  readonly expiresAtMs: number
  /** The lifetime with which the token was issued. A token that it mints for a child agent cannot have a longer one. */
  readonly lifeSeconds: number
  /** The run of all calls with this token and with the tokens that it mints. Absent when the token was minted without one. */
  readonly runId?: string
}

export interface SessionPrincipal extends Common {
  readonly kind: 'session'
  readonly userId: number
  readonly role: Role
  readonly email: string
  /** Identifies the session: base64 of the hash of the cookie's id. */
  readonly sessionId: string
  /** True when OPERATOR_EMAILS lists the address of the person and the sign-in of this session proved it. Decision 0732 says why. */
  readonly isOperator?: true
}

export type Principal = KeyPrincipal | AgentPrincipal | SessionPrincipal
/** A caller with a bearer credential. */
export type BearerPrincipal = KeyPrincipal | AgentPrincipal

/** What a row requires of its caller in addition to the kind of credential. Every row has a rule. The rule `{}` accepts any credential of that kind. */
export interface AccessRule {
  /** 'full': requires an API key of scope full. Agent tokens count as inference scope. */
  readonly scope?: 'full'
  /** The scope that an agent token needs. Without it, every agent token is accepted. */
  readonly agentScope?: AgentScope
  /** The lowest role that the user of the credential needs. A key without a user has no role. */
  readonly role?: 'admin' | 'owner'
  /** With `role`: a holder of one of these capabilities is accepted too. */
  readonly orCapability?: readonly Capability[]
  /** True: only credentials with a user are accepted. */
  readonly userBacked?: true
  /** True: only agent tokens are accepted. */
  readonly agentOnly?: true
  /** True: no agent token is accepted, whatever its scopes are. */
  readonly noAgents?: true
  /** True: only sessions of operators are accepted. Other people get the reply of an unknown path. */
  readonly operator?: true
}

const rank: Record<Role, number> = { member: 0, admin: 1, owner: 2 }

/** Returns the message for an agent token without the required scope. */
export function lacksScope({ scopes }: AgentPrincipal, missing: AgentScope): string {
  return `This needs the scope ${missing}; this agent token has ${scopes.join(' ')}. Ask for a token with that scope.`
}

/**
 * Returns whether a key may act in the name of an agent, so that its calls count as the agent's. `ownerUser` is the agent's owner. These
 * keys may:
 * - full keys, because they can mint tokens of every agent;
 * - keys of owners and admins;
 * - keys without a user, because the operator made them;
 * - keys of the agent's owner.
 * Decision 0463 gives the reasons.
 */
export function mayActFor({ scope, userId, role }: Pick<KeyPrincipal, 'scope' | 'userId' | 'role'>, ownerUser: number | null): boolean {
  return scope === 'full' || userId === null || role === 'owner' || role === 'admin' || userId === ownerUser
}

/**
 * Returns whether the principal may call a row with this rule. `why` is for the error message. With `isHidden`, the row does not exist for this principal.
 * Pure.
 */
export function mayCall(principal: Principal, rule: AccessRule): { ok: true } | { ok: false; why: string; isHidden?: true } {
  if (rule.operator && !(principal.kind === 'session' && principal.isOperator === true)) return { ok: false, why: '', isHidden: true }
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
