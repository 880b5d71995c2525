/** Computes the caps that bind a run from those of its owner, of the key that calls, of the calls and of the run itself. Pure. */
import { type RunCaps, runCapsOf, type StoredRunCaps } from '../../../../platform/security/run-caps.ts'

/** The caps that a call asks for. Null means none. */
export interface AskedCaps {
  readonly costUinr: bigint | null
  readonly calls: bigint | null
}

/** The rules that bind the runs of a call: those of the owner of the run, and those of the key when the run belongs to an agent. */
export interface RunRules {
  readonly owner: RunCaps | null
  readonly key: RunCaps | null
}

/** The caps that bind a run. */
export interface EffectiveCaps {
  readonly costUinr: bigint | null
  readonly calls: bigint | null
  readonly strict: boolean
  readonly minutes: number | null
  readonly subagents: number | null
  readonly depth: number | null
}

/** Returns true when the rules need the row of the run. */
export function haveCaps({ owner, key }: RunRules): boolean {
  return hasCap(owner) || hasCap(key)
}

const hasCap = (caps: RunCaps | null): boolean =>
  caps !== null && !(caps.maxCostUinr === null && caps.maxCalls === null && caps.maxMinutes === null && caps.maxSubagents === null && caps.maxDepth === null)

/** Returns the lower of two caps. Null is no cap. */
export const lower = <T extends number | bigint>(a: T | null, b: T | null): T | null => (a === null ? b : b === null || a < b ? a : b)

/**
 * Returns the caps on cost and calls that a call asks for. The caps of the key of an agent's call count like those of a header, because a run has one
 * counter for all of its callers.
 */
export function askedOf(asked: AskedCaps | null, key: RunCaps | null): AskedCaps {
  return {
    costUinr: lower(asked?.costUinr ?? null, key?.maxCostUinr ?? null),
    calls: lower(asked?.calls ?? null, key === null || key.maxCalls === null ? null : BigInt(key.maxCalls)),
  }
}

/** What is written on the row of a run. */
export interface OwnCaps {
  readonly askedCostUinr: bigint | null
  readonly askedCalls: bigint | null
  readonly setCaps: StoredRunCaps | null
}

/** Returns the caps of a run after a call has asked for lower ones. A cap that its owner has set is lowered too. */
export function afterAsking(before: OwnCaps, asked: AskedCaps): OwnCaps {
  const isLower = (is: bigint | null, was: bigint | null): boolean => is !== null && (was === null || is < was)
  const cost = isLower(asked.costUinr, before.askedCostUinr)
  const calls = isLower(asked.calls, before.askedCalls)
  if (!cost && !calls) return before
  const set = before.setCaps
  const setCost = set?.max_cost_uinr
  const setCalls = set?.max_calls
  return {
    askedCostUinr: cost ? asked.costUinr : before.askedCostUinr,
    askedCalls: calls ? asked.calls : before.askedCalls,
    setCaps:
      set === null
        ? null
        : {
            ...set,
            ...(cost && setCost !== undefined ? { max_cost_uinr: Math.min(setCost, Number(asked.costUinr)) } : {}),
            ...(calls && setCalls !== undefined ? { max_calls: Math.min(setCalls, Number(asked.calls)) } : {}),
          },
  }
}

/** Returns the caps that bind the run. What its owner has set for the run alone comes before every other cap. */
export function effectiveCaps({ askedCostUinr, askedCalls, setCaps }: OwnCaps, owner: RunCaps | null): EffectiveCaps {
  const set = runCapsOf(setCaps)
  const calls = owner === null || owner.maxCalls === null ? null : BigInt(owner.maxCalls)
  return {
    costUinr: set?.maxCostUinr ?? lower(owner?.maxCostUinr ?? null, askedCostUinr),
    calls: set === null || set.maxCalls === null ? lower(calls, askedCalls) : BigInt(set.maxCalls),
    strict: owner?.isStrict === true,
    minutes: set?.maxMinutes ?? owner?.maxMinutes ?? null,
    subagents: set?.maxSubagents ?? owner?.maxSubagents ?? null,
    depth: owner?.maxDepth ?? null,
  }
}
