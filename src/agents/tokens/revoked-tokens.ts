import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog, News, NewsItem } from '../../platform/db/db-control-log.ts'
import type { Inflight } from '../../platform/loop/inflight.ts'
import type { Log } from '../../platform/observe/log.ts'
import { deleteExpiredRevocations, insertRevocation, liveRevocations } from '../federation/trust-queries.ts'
import { refused } from './token-refusal.ts'

export interface RevokedTokensDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  readonly inflight: Inflight
  /** The setting AGENT_TOKEN_TTL_S, in milliseconds. */
  readonly tokenTtlMs: number
}

/** Maximum difference between the clocks that compare a token's expiry. */
const slackMs = 5 * 60_000
const pruneEveryMs = 60_000

/**
 * Remembers revoked tokens by their `jti`, and trust rules whose tokens were revoked as `trust:<id>`. Every process knows all revocations that still
 * matter. It reads them at start, and the control log adds new ones. The kill switch checks that the control log was read recently. Decision 0198
 * says why.
 */
export class RevokedTokens {
  readonly #deps: RevokedTokensDeps
  readonly #knownAtMs = new Map<string, number>()
  #stop: (() => void) | null = null

  constructor(deps: RevokedTokensDeps) {
    this.#deps = deps
    deps.controlLog.on(news => this.#onNews(news))
    deps.controlLog.onGap(() => void this.#load().catch(error => deps.log.error('revoked_tokens_load_failed', { error })))
  }

  /** Reads the revocations. Call it after the control log has started, so that it misses no revocation. */
  async start(): Promise<void> {
    await this.#load()
    this.#stop = this.#deps.clock.every(pruneEveryMs, () => this.#prune())
  }

  stop(): void {
    this.#stop?.()
    this.#stop = null
  }

  /** Throws 401 `token_revoked` when one of these ids was revoked. */
  check(tokenIds: readonly string[]): void {
    if (this.#knownAtMs.size === 0) return
    for (const id of tokenIds) if (this.#knownAtMs.has(id)) throw refused('token_revoked')
  }

  /**
   * Revokes a token. The token is refused and its running calls are cut. The change is in force on this process when the promise resolves, and on
   * other processes within a second. A second call changes nothing.
   */
  async revoke(orgId: number, tokenId: string): Promise<void> {
    await this.#deps.controlLog.change(async tx => ({ value: undefined, news: await this.revokeIn(tx, orgId, tokenId) }))
  }

  /** Revokes a token as `revoke` does, inside the caller's transaction. The caller appends the returned event to the control log. */
  async revokeIn(tx: Tx, orgId: number, tokenId: string): Promise<NewsItem[]> {
    const { clock, tokenTtlMs } = this.#deps
    const nowMs = clock.nowMs()
    // Tokens that were made from this token just before the revocation have expired by this time. No token can be made from it afterwards.
    await tx.exec(insertRevocation, orgId, tokenId, new Date(nowMs), new Date(nowMs + tokenTtlMs + slackMs))
    return [{ kind: 'token_revoked', ref: tokenId }]
  }

  /** Deletes revocations of expired tokens. Returns their number. */
  sweep(): Promise<number> {
    return this.#deps.db.exec(deleteExpiredRevocations, new Date(this.#deps.clock.nowMs()))
  }

  #onNews(news: News): void {
    if (news.kind === 'token_revoked') this.#learn(news.ref)
  }

  #learn(tokenId: string): void {
    this.#knownAtMs.set(tokenId, this.#deps.clock.monotonicMs())
    this.#deps.inflight.abortToken(tokenId, 'token_revoked')
  }

  async #load(): Promise<void> {
    for (const { tokenId } of await this.#deps.db.many(liveRevocations, new Date(this.#deps.clock.nowMs()))) this.#learn(tokenId)
  }

  #prune(): void {
    const oldestMs = this.#deps.clock.monotonicMs() - this.#deps.tokenTtlMs - slackMs
    for (const [id, knownAtMs] of this.#knownAtMs) if (knownAtMs < oldestMs) this.#knownAtMs.delete(id)
  }
}
