/**
 * Concurrent calls: the cap that an owner puts on a key or an agent. One counter each, for ever; a call holds one unit of it from admission
 * until it ends, and nothing of it is ever spent. Decision 0135 says why.
 */
import type { CallPolicy } from '../../../../platform/security/principal.ts'
import type { ScopeRef } from './counter-state.ts'

/** A cap of concurrent calls, as a caller's binding remembers it. */
export interface RunningCap {
  readonly ref: ScopeRef
  readonly ownerId: number
  readonly cap: number
}

const none: readonly RunningCap[] = []

/** The caps among the policies of a call, in their order: those of the key, then of the agent. */
export function runningCapsOf(orgId: number, policies: readonly CallPolicy[] | undefined): readonly RunningCap[] {
  if (policies === undefined || policies.length === 0) return none
  return policies.flatMap(({ owner, ownerId, maxConcurrency }) =>
    maxConcurrency === null ? [] : [{ ref: { orgId, scope: owner, scopeId: String(ownerId) }, ownerId, cap: maxConcurrency }],
  )
}

/** True when the caps are those of the policies. On the path of every call: makes nothing, and for callers without policies it is two comparisons. */
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
