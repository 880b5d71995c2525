import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { ControlLog, News } from '../platform/db/db-control-log.ts'
import { fail } from '../platform/errors.ts'
import { everyToolCall, type Inflight } from '../platform/loop/inflight.ts'
import type { Log } from '../platform/observe/log.ts'
import { recentEpochs } from './queries.ts'
import { refused } from './tokens/token-refusal.ts'

export interface KillSwitchDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  readonly inflight: Inflight
  /** AGENT_STALE_MS. A process that has not read the control log for this long cannot know whether an agent is still active. */
  readonly staleMs: number
  /** AGENT_TOKEN_TTL_S in milliseconds. The process must remember an epoch for this long. */
  readonly tokenTtlMs: number
}

/** Maximum difference between the clocks that compare a token's expiry. */
const slackMs = 5 * 60_000
const watchEveryMs = 1_000
const pruneEveryMs = 60_000

/**
 * Ends an agent immediately on every process. Each process knows the lowest valid epoch of every agent that may have older, unexpired tokens. A
 * revocation raises the epoch through the control log, and every call compares the epoch of its token with it. A known epoch never falls, so events
 * may come late, twice or in any order. Decision 0060 says why.
 */
export class KillSwitch {
  readonly #deps: KillSwitchDeps
  readonly #epochs = new Map<number, { readonly epoch: number; readonly knownAtMs: number }>()
  readonly #stops: (() => void)[] = []

  constructor(deps: KillSwitchDeps) {
    this.#deps = deps
    deps.controlLog.on(news => this.#onNews(news))
    deps.controlLog.onGap(() => void this.#load().catch(error => deps.log.error('agent_epochs_load_failed', { error })))
  }

  /**
   * Loads the epochs, and begins to watch when the control log was last read. It must be called after the control log has started. Otherwise it could
   * miss a revocation.
   */
  async start(): Promise<void> {
    await this.#load()
    const { clock } = this.#deps
    this.#stops.push(
      clock.every(watchEveryMs, () => this.cutWhenStale()),
      clock.every(pruneEveryMs, () => this.#prune()),
    )
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  /** Throws 401 `agent_revoked` when a token of that epoch is revoked. Throws 503 when this process has not read the control log for too long to know. */
  check(agentId: number, epoch: number, ancestorIds: readonly number[]): void {
    if (!this.stands({ id: agentId, epoch, ancestorIds })) throw refused('agent_revoked')
  }

  /**
   * Returns whether the agent of that epoch and the agents above it are not revoked, as far as this process knows. Throws 503 when it has not read
   * the control log for too long to know.
   */
  stands({ id, epoch, ancestorIds }: { readonly id: number; readonly epoch: number; readonly ancestorIds: readonly number[] }): boolean {
    const known = this.#epochs.get(id)
    if (known !== undefined && epoch < known.epoch) return false
    // The epoch of an agent above rises only when that agent is revoked. Such a revocation is final and ends the agents below too.
    for (const ancestorId of ancestorIds) if (this.#epochs.has(ancestorId)) return false
    if (this.isStale())
      throw fail('database_unavailable', { message: 'The gateway cannot confirm that this agent is still active. Try again shortly.', retryAfterSeconds: 2 })
    return true
  }

  /** Cuts the calls of a key when the gateway learns, after the calls began, that the key is revoked. */
  cutKey(keyId: number): void {
    this.#deps.inflight.abortKey(keyId, 'key_revoked')
  }

  /** Returns whether the control log was last read too long ago to trust an agent token. */
  isStale(): boolean {
    return this.#deps.controlLog.lastSyncAgeMs() > this.#deps.staleMs
  }

  /** Cuts all running calls of agents and all running calls of tools when the control log was last read too long ago. It runs every second. */
  cutWhenStale(): void {
    if (!this.isStale()) return
    const { inflight } = this.#deps
    const count = inflight.abortAllAgents('agent_stale')
    inflight.abortToken(everyToolCall, 'tools_stale')
    if (count > 0) this.#deps.log.warn('agent_calls_cut_stale', { count })
  }

  #onNews(news: News): void {
    const { inflight } = this.#deps
    const id = Number(news.ref)
    if (news.kind === 'agent_revoked') {
      this.#raise(id, news.epoch ?? 0)
      inflight.abortAgent(id, 'agent_revoked')
    } else if (news.kind === 'key_revoked') inflight.abortKey(id, 'key_revoked')
  }

  #raise(agentId: number, epoch: number): void {
    const known = this.#epochs.get(agentId)
    if (known === undefined || known.epoch < epoch) this.#epochs.set(agentId, { epoch, knownAtMs: this.#deps.clock.monotonicMs() })
  }

  async #load(): Promise<void> {
    for (const { id, epoch } of await this.#deps.db.many(recentEpochs, this.#keepMs)) {
      this.#raise(id, epoch)
      this.#deps.inflight.abortAgent(id, 'agent_revoked')
    }
  }

  #prune(): void {
    const oldestMs = this.#deps.clock.monotonicMs() - this.#keepMs
    for (const [id, { knownAtMs }] of this.#epochs) if (knownAtMs < oldestMs) this.#epochs.delete(id)
  }

  get #keepMs(): number {
    return this.#deps.tokenTtlMs + slackMs
  }
}
