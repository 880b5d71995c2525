import { createHash } from 'node:crypto'
import type { PriorDiscovery } from '@modelcontextprotocol/client'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { UpstreamTarget } from './upstream-target.ts'

/** The protocol of a server: `modern` from 2026-07-28 on, `legacy` with `initialize`. */
export type Era = 'modern' | 'legacy'

const serversMax = 2000
const modernMs = 24 * 3600_000
/** A server that is updated is seen as modern after at most this time. */
const legacyMs = 3600_000

/**
 * Remembers which protocol a server speaks, so that a call needs no round trip for it. An entry belongs to an address and its credential, because a server may
 * describe itself differently to another principal.
 */
export class EraMemory {
  readonly #clock: Clock
  readonly #entries = new LRUCache<string, { readonly prior: PriorDiscovery; readonly untilMs: number }>({ max: serversMax })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(target: UpstreamTarget): PriorDiscovery | null {
    const entry = this.#entries.get(keyOf(target))
    return entry === undefined || this.#clock.monotonicMs() >= entry.untilMs ? null : entry.prior
  }

  /** Keeps an entry until its time is over, also when it is found again before. */
  note(target: UpstreamTarget, prior: PriorDiscovery): void {
    if (this.get(target)?.kind === prior.kind) return
    const untilMs = this.#clock.monotonicMs() + (prior.kind === 'modern' ? modernMs : legacyMs)
    this.#entries.set(keyOf(target), { prior, untilMs })
  }

  forget(target: UpstreamTarget): void {
    this.#entries.delete(keyOf(target))
  }
}

/** The key contains no secret. */
function keyOf({ url, header }: UpstreamTarget): string {
  return createHash('sha256')
    .update(JSON.stringify([url, header?.name ?? null, header?.value ?? null]))
    .digest('base64')
}
