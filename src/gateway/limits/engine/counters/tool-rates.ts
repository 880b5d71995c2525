/**
 * Counts calls of tools for the limits of a minute and of a day that an owner sets for a key or an agent. They have counters of their own, so calls of tools take
 * nothing from the limits of models. Decision 0824 gives the reasons.
 */
import type { CallPolicy } from '../../../../platform/security/principal.ts'
import type { Counter, ScopeRef } from './counter-state.ts'

/** A limit of calls of tools in a caller's binding. */
export interface ToolRate {
  readonly ref: ScopeRef
  readonly metric: 'rpm' | 'daily'
  readonly limit: number
}

/** The end of the scope id of such a counter. Ids of keys and agents are numbers. */
const suffix = '/tools'

/** Returns true for the counter of a limit of calls of tools. */
export const isToolRate = ({ scopeId }: Pick<Counter, 'scopeId'>): boolean => scopeId.endsWith(suffix)

/** Returns the limits among the policies of a call, in their order. */
export function toolRatesOf(orgId: number, policies: readonly CallPolicy[] = []): readonly ToolRate[] {
  return policies.flatMap(({ owner, ownerId, toolRpm = null, toolDaily = null }) => {
    const ref: ScopeRef = { orgId, scope: owner, scopeId: `${ownerId}${suffix}` }
    return [
      ...(toolRpm === null ? [] : [{ ref, metric: 'rpm' as const, limit: toolRpm }]),
      ...(toolDaily === null ? [] : [{ ref, metric: 'daily' as const, limit: toolDaily }]),
    ]
  })
}

/** Returns true when two lists have the same limits. */
export function areSameRates(a: readonly ToolRate[], b: readonly ToolRate[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ ref, metric, limit }, i) => {
      const other = b[i] as ToolRate
      return metric === other.metric && limit === other.limit && ref.scope === other.ref.scope && ref.scopeId === other.ref.scopeId
    })
  )
}
