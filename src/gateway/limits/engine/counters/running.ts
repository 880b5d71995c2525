/**
 * Counts concurrent calls for the cap that an owner sets for a key or an agent. Each cap has one counter, which has no period. A call holds one unit of the
 * counter from admission until the call ends. The counter never counts anything as spent. Decision 0135 gives the reasons.
 */
import type { CallPolicy } from '../../../../platform/security/principal.ts'
import type { ScopeRef } from './counter-state.ts'

/** A cap of concurrent calls in a caller's binding. */
export interface RunningCap {
  readonly ref: ScopeRef
  readonly ownerId: number
  readonly cap: number
}

const none: readonly RunningCap[] = []

/** Returns the caps among the policies of a call, in their order: those of the key, then those of the agent. */
export function runningCapsOf(orgId: number, policies: readonly CallPolicy[] | undefined): readonly RunningCap[] {
  if (policies === undefined || policies.length === 0) return none
  return policies.flatMap(({ owner, ownerId, maxConcurrency }) =>
    maxConcurrency === null ? [] : [{ ref: { orgId, scope: owner, scopeId: String(ownerId) }, ownerId, cap: maxConcurrency }],
  )
}

/** Returns true when the caps are those of the policies. Every call runs it, so it allocates nothing. For callers without policies it is two comparisons. */
export function areCapsOf(caps: readonly RunningCap[], policies: readonly CallPolicy[] | undefined): boolean {
  let at = 0
  if (policies !== undefined && policies.length > 0) {
    for (const policy of policies) {
      if (policy.maxConcurrency === null) continue
      const known = caps[at]
      if (known === undefined || known.cap !== policy.maxConcurrency || known.ownerId !== policy.ownerId || known.ref.scope !== policy.owner) return false
      at++
    }
  }
  return at === caps.length
}
