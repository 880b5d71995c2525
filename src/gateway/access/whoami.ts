import { fail } from '../../platform/errors.ts'
import type { BearerPrincipal, Principal } from '../../platform/security/principal.ts'

export interface WhoamiDeps {
  readonly version: string
  orgName(orgId: number): Promise<string>
  memoryConfigured(orgId: number): Promise<boolean>
  /** Returns the caller's budget with the smallest remaining amount. Returns null without a budget. */
  tightestBudget(principal: BearerPrincipal): Promise<object | null>
  /** Returns the remaining prepaid balance of the organisation in rupees. Returns null without prepayment. */
  balanceInr(orgId: number): Promise<number | null>
}

/** Describes the caller to itself. Agents read their own identity and limits before they act. */
export class Whoami {
  readonly #deps: WhoamiDeps
  constructor(deps: WhoamiDeps) {
    this.#deps = deps
  }

  async describe(principal: Principal): Promise<object> {
    if (principal.kind === 'session') throw fail('invalid_api_key')
    const isAgent = principal.kind === 'agent'
    const { orgName, memoryConfigured, tightestBudget, balanceInr } = this.#deps
    const [name, configured, budget, balance] = await Promise.all([
      orgName(principal.orgId),
      memoryConfigured(principal.orgId),
      tightestBudget(principal),
      balanceInr(principal.orgId),
    ])
    return {
      principal: isAgent ? { kind: 'agent', id: principal.agentId, name: principal.agentName } : { kind: 'key', id: principal.keyId, name: principal.keyName },
      org: { id: principal.orgId, name },
      user: principal.userId === null ? null : { id: principal.userId },
      workspace_id: principal.workspaceId,
      agent: isAgent ? { id: principal.agentId, name: principal.agentName } : null,
      key: { id: principal.keyId, name: principal.keyName },
      role: principal.role,
      scope: isAgent ? principal.scopes.join(' ') : principal.scope,
      token_expires_at: isAgent ? new Date(principal.expiresAtMs).toISOString() : null,
      limits: { rpm_limit: principal.limits.rpmLimit, daily_limit: principal.limits.dailyLimit },
      budget,
      credit: balance === null ? null : { balance_inr: balance, trial: principal.isTrial === true },
      memory: { configured },
      version: this.#deps.version,
    }
  }
}
