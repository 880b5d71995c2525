import type { Scope } from '../engine/counters/counter-state.ts'

/** The scopes whose owners are rows of an organisation. */
export type TargetScope = Exclude<Scope, 'org' | 'team'>

/** Looks up the owners of budgets in the domains that know them. */
export interface BudgetTargets {
  /** Returns the organisation itself. */
  org(orgId: number): Promise<{ readonly name: string; readonly kind: 'personal' | 'team' }>
  /** Returns the names of those ids that exist in the organisation and can still be charged. */
  names(orgId: number, scope: TargetScope, ids: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Returns those of these ids that a person answers for: the person, their keys, and the agents that they own. */
  owned(orgId: number, scope: TargetScope, ids: readonly number[], userId: number): Promise<readonly number[]>
  /** Returns the name of an owner that may get a budget, or null. Throws `agent_revoked` for a revoked agent. */
  name(orgId: number, scope: TargetScope, id: number): Promise<string | null>
}
