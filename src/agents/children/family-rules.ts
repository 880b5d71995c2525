import { bytesOfPolicies } from '../../gateway/keys/key-rules.ts'
import type { Clock } from '../../platform/clock.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import type { CallPolicy } from '../../platform/security/principal.ts'

type Policies = readonly CallPolicy[]

export interface FamilyRulesDeps {
  readonly clock: Clock
  readonly controlLog: ControlLog
  /** The setting CACHE_TTL_MS. */
  readonly cacheTtlMs: number
  /** Loads the rules of one agent. Returns null when the agent does not exist. */
  load(agentId: number): Promise<Policies | null>
}

const agentsCachedMax = 50_000
/** Maximum number of bytes of cached rules. The rules of one agent may have some tens of kilobytes. Decision 0654 says why. */
const agentsCachedBytesMax = 64 * 1024 * 1024
/** Bytes of an entry in memory without the rules. */
const entryBytes = 256

/**
 * Collects the rules that bind the calls of an agent: its own rules and the rules of every agent above it. They are cached by agent, so a change of
 * one agent reaches all agents below it.
 */
export class FamilyRules {
  readonly #policies: ExpiringCache<number, Policies>

  constructor({ clock, controlLog, cacheTtlMs, load }: FamilyRulesDeps) {
    const bytes = { max: agentsCachedBytesMax, sizeOf: (policies: Policies) => entryBytes + bytesOfPolicies(policies) }
    this.#policies = new ExpiringCache({ max: agentsCachedMax, bytes, ttlMs: cacheTtlMs, clock, load })
    controlLog.on(news => {
      if (news.kind === 'agent_changed' || news.kind === 'agent_revoked') this.#policies.invalidate(Number(news.ref))
    })
    controlLog.onGap(() => this.#policies.clear())
  }

  /**
   * Returns the agent's own rules first, then the rules of the agents above it, nearest first. Returns null when one of these agents does not exist.
   * The result is synchronous when all rules are cached.
   */
  of(agentId: number, ancestorIds: readonly number[]): Policies | null | Promise<Policies | null> {
    const own = this.#policies.get(agentId)
    if (ancestorIds.length === 0) return own
    const all = [own, ...ancestorIds.map(id => this.#policies.get(id))]
    const known = all.flatMap(policies => (policies instanceof Promise ? [] : [policies]))
    return known.length === all.length ? together(known) : Promise.all(all).then(together)
  }
}

function together(all: readonly (Policies | null)[]): Policies | null {
  return all.some(policies => policies === null) ? null : all.flatMap(policies => policies ?? [])
}
