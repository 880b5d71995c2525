/**
 * Limits of tokens a minute, which an owner sets for a key or an agent. Each limit has one counter for each clock minute. A call holds its estimated prompt
 * and its first slice of output. Decision 0817 gives the reasons.
 */
import type { CallPolicy } from '../../../../platform/security/principal.ts'
import type { AdmissionRequest, CountedUsage } from '../admission.ts'
import type { ScopeRef } from './counter-state.ts'

/** A limit of tokens a minute in a caller's binding. */
export interface TokenCap {
  readonly ref: ScopeRef
  readonly ownerId: number
  readonly cap: number
}

const none: readonly TokenCap[] = []

type Caller = Pick<AdmissionRequest, 'policies' | 'isTool' | 'isCached'>

/** Returns the limits among the policies of a call, in their order. A call of a tool, and one that a stored reply serves, uses no tokens, so no limit binds it. */
export function tokenCapsOf(orgId: number, { policies, isTool, isCached }: Caller): readonly TokenCap[] {
  if (policies === undefined || policies.length === 0 || isTool === true || isCached === true) return none
  return policies.flatMap(({ owner, ownerId, tpmLimit }) =>
    tpmLimit === null || tpmLimit === undefined ? [] : [{ ref: { orgId, scope: owner, scopeId: String(ownerId) }, ownerId, cap: tpmLimit }],
  )
}

/** Returns true when the limits are those of the call's policies. Every call runs it, so it allocates nothing. */
export function areTokenCapsOf(caps: readonly TokenCap[], { policies, isTool, isCached }: Caller): boolean {
  let at = 0
  if (policies !== undefined && policies.length > 0 && isTool !== true && isCached !== true) {
    for (const { owner, ownerId, tpmLimit } of policies) {
      if (tpmLimit === null || tpmLimit === undefined) continue
      const known = caps[at]
      if (known === undefined || known.cap !== tpmLimit || known.ownerId !== ownerId || known.ref.scope !== owner) return false
      at++
    }
  }
  return at === caps.length
}

/** Returns true when a limit of tokens is among these policies. */
export const hasTokenCap = (policies: readonly CallPolicy[]): boolean => {
  for (const { tpmLimit } of policies) if (tpmLimit !== null && tpmLimit !== undefined) return true
  return false
}

/**
 * Returns the tokens that a call holds of a limit: its prompt and its first slice of output. Where the output is what does not fit, the call holds the
 * whole limit, so that a small limit serves its first call.
 */
export function tokensHeld(cap: bigint | null, { promptTokens = 0, outputTokens = 0 }: Pick<AdmissionRequest, 'promptTokens' | 'outputTokens'>): bigint {
  const asked = BigInt(promptTokens + outputTokens)
  return cap !== null && asked > cap && BigInt(promptTokens) <= cap ? cap : asked
}

/** Returns the tokens that count: those of the prompt that came from no cache, and those of the answer. */
export function countedTokens({ promptTokens = 0, completionTokens = 0, cachedTokens = 0 }: CountedUsage): number {
  return Math.ceil(Math.max(0, promptTokens - cachedTokens) + completionTokens)
}
