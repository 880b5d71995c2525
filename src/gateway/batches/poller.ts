/**
 * Asks providers about batches. Every process runs a poller, and each batch is worked on by one of them at a time: it claims the row, and renews the claim
 * while it works. A batch that cannot be asked about or charged waits longer, and delays no other. Decisions 0883 and 0884 give the reasons.
 */
import { DatabaseUnavailableError } from '../../platform/db/db.ts'
import { cancelPlaces, claimMs, graceMs, lostMs, orgCancelPlaces, orgPlaces, pollGrowth, pollMostTimes, pollPlaces, unknownMs } from './batch-bounds.ts'
import { type BatchRow, cancelRevoked, claimBatches, endClaim, findRivals, renewClaim, setUpstream } from './batch-queries.ts'
import type { BatchesDeps } from './batches-deps.ts'
import { findAlike, findMarked } from './provider/find-batch.ts'
import { type ProviderAccount, ProviderRefusedError } from './provider/provider-account.ts'
import { askBatch, cancelRemote, type RemoteBatch } from './provider/remote-batch.ts'
import type { Settlement } from './settlement.ts'

/** The longest pause between two looks for due batches. */
const lookEveryMs = 5_000

/** With these, a provider says that there is nothing to cancel. */
const endedStatuses: ReadonlySet<number> = new Set([400, 404, 409])

/** With these, a provider says that it does not have a batch or its results. */
const goneStatuses: ReadonlySet<number> = new Set([404, 410])

/** The provider of a batch, or the key for it, is not here any more. */
class AccountGoneError extends Error {
  override readonly name = 'AccountGoneError'
}

/**
 * Returns a batch on an own key that its owner has deleted: all requests that are not known to have failed count as done. Otherwise the budgets of agents and
 * keys would count nothing of it.
 */
const withoutKey = (row: BatchRow): BatchRow =>
  row.byok && row.upstreamId !== null ? { ...row, completed: Math.max(row.completed, row.lines - row.failed) } : row

/** What the provider said about a batch. */
interface Looked {
  readonly remote: RemoteBatch
  readonly account: ProviderAccount
  /** True when it was asked to cancel now. */
  readonly isCancelled: boolean
}

const isCancelDue = ({ cancelAskedAt, cancelSentAt }: BatchRow): boolean => cancelAskedAt !== null && cancelSentAt === null

/** A claimed batch. */
interface Claimed {
  readonly row: BatchRow
  readonly claim: string
  /** True in a place for cancels: the batch is charged in another one. */
  readonly onlyCancels: boolean
  readonly signal: AbortSignal
}

/** Polls in one process. */
export class BatchPoller {
  readonly #deps: BatchesDeps
  readonly #settlement: Settlement
  readonly #stop = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  /** The batches that are asked to cancel, and are not charged in this place. */
  readonly #cancelling = new Set<Promise<void>>()
  /** True when more batches may be due than the last look could claim. */
  #hasMore = false
  #look: Promise<void> | null = null

  constructor(deps: BatchesDeps, settlement: Settlement) {
    this.#deps = deps
    this.#settlement = settlement
  }

  /** Looks for due batches regularly. The returned function stops that, and gives the batches under way back. */
  start(): () => Promise<void> {
    const { clock, config } = this.#deps
    const stopTimer = clock.every(Math.min(lookEveryMs, config.BATCH_POLL_MS), () => this.#lookSoon())
    return async () => {
      stopTimer()
      this.#stop.abort(new Error('the process stops'))
      await this.#look
      await Promise.all([...this.#underWay, ...this.#cancelling])
    }
  }

  #lookSoon(): void {
    if (this.#look !== null || this.#stop.signal.aborted) return
    this.#look = this.#claimDue()
      .catch((error: unknown) => {
        if (!(error instanceof DatabaseUnavailableError)) this.#deps.log.error('batch_look_failed', { error })
      })
      .finally(() => {
        this.#look = null
      })
  }

  async #claimDue(): Promise<void> {
    const { db, nowMs } = this.#deps
    await db.exec(cancelRevoked, new Date(nowMs()))
    // A batch with long results has its place for minutes. Cancels have places of their own, because every minute of such a batch costs money.
    const cancels = await this.#claim(this.#cancelling, cancelPlaces, orgCancelPlaces)
    const others = await this.#claim(this.#underWay, pollPlaces, orgPlaces)
    this.#hasMore = cancels + others >= orgPlaces
  }

  /** Claims due batches for the free ones of `places`, and begins to work on them. Returns how many. */
  async #claim(inPlaces: Set<Promise<void>>, places: number, orgMost: number): Promise<number> {
    const { db, ids, nowMs } = this.#deps
    const free = places - inPlaces.size
    if (free <= 0) return 0
    const now = nowMs()
    const claim = ids.uuidv7(now)
    const endsCancels = inPlaces === this.#cancelling
    const rows = await db.many(claimBatches, new Date(now), claim, new Date(now + this.#claimMs), free, orgMost, endsCancels)
    for (const row of rows) {
      const work = this.#work(row, claim, endsCancels).finally(() => {
        inPlaces.delete(work)
        if (this.#hasMore) this.#lookSoon()
      })
      inPlaces.add(work)
    }
    return rows.length
  }

  /** The time of a claim: short enough that another process soon goes on when this one dies. */
  get #claimMs(): number {
    return Math.min(claimMs, Math.max(2_000, this.#deps.config.BATCH_POLL_MS))
  }

  /** Works on one batch. It never rejects. */
  async #work(row: BatchRow, claim: string, onlyCancels: boolean): Promise<void> {
    const { db, clock, log, nowMs } = this.#deps
    const lost = new AbortController()
    const renew = async (): Promise<void> => {
      if ((await db.exec(renewClaim, row.id, claim, new Date(nowMs() + this.#claimMs))) === 0) lost.abort(new Error('the claim is lost'))
    }
    const stopRenewing = clock.every(this.#claimMs / 3, () => void renew().catch(() => undefined))
    const claimed = { row, claim, onlyCancels, signal: AbortSignal.any([this.#stop.signal, lost.signal]) }
    try {
      await this.#ask(claimed)
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError)) log.warn('batch_poll_failed', { orgId: row.orgId, provider: row.provider, error })
      await this.#failed(claimed, error).catch(() => undefined)
    } finally {
      stopRenewing()
    }
  }

  async #ask(claimed: Claimed): Promise<void> {
    const { row, signal } = claimed
    const account = await this.#deps.accounts.of(row)
    if (account === null) throw new AccountGoneError(row.provider)
    const upstreamId = row.upstreamId ?? (await this.#recovered(claimed, account))
    if (upstreamId === null) return
    const isCancelled = isCancelDue(row) && (await this.#cancelled(row, upstreamId, account, signal))
    const remote = await askBatch(account, row.format, upstreamId, signal)
    if (claimed.onlyCancels && isCancelled) await this.#wait(claimed, remote, true)
    else if (remote.isEnded) await this.#settle(claimed, remote, account)
    else if (this.#isOverdue(row)) await this.#endOverdue(claimed, { remote, account, isCancelled })
    else await this.#wait(claimed, remote, isCancelled)
  }

  /**
   * Ends a batch that its provider works on beyond its time. The provider is asked to cancel it first, because nobody pays for what is done after the
   * settlement. When it goes on all the same, the batch costs what is known of it.
   */
  async #endOverdue(claimed: Claimed, { remote, account, isCancelled }: Looked): Promise<void> {
    const { row, claim, signal } = claimed
    const isDeaf = row.cancelSentAt !== null && this.#deps.nowMs() > row.cancelSentAt.getTime() + graceMs
    if (isDeaf || this.#isLost(row)) return this.#settlement.giveUp({ ...row, completed: remote.completed }, claim)
    const isSent = isCancelled || row.cancelSentAt !== null || (await this.#cancelled(row, remote.id, account, signal))
    await this.#wait(claimed, remote, isSent)
  }

  /** Charges an ended batch. When nobody can read its results any more, it costs what is known of it. */
  async #settle(claimed: Claimed, remote: RemoteBatch, account: ProviderAccount): Promise<void> {
    const { row, claim, signal } = claimed
    try {
      await this.#settlement.settle(row, remote, account, signal)
    } catch (error) {
      if (!this.#isHopeless(claimed, error)) throw error
      await this.#settlement.giveUp({ ...row, completed: remote.completed }, claim, remote.results)
    }
  }

  /**
   * Asks the provider to end a batch, once. Returns true when that is done. A provider that knows no such batch, or says that it cannot be cancelled, has ended
   * it already. Any other refusal says nothing about the batch, so the next look asks again.
   */
  async #cancelled(row: BatchRow, upstreamId: string, account: ProviderAccount, signal: AbortSignal): Promise<boolean> {
    try {
      await cancelRemote(account, row.format, upstreamId, signal)
      return true
    } catch (error) {
      if (!(error instanceof ProviderRefusedError)) throw error
      if (endedStatuses.has(error.status)) return true
      this.#deps.log.warn('batch_cancel_refused', { orgId: row.orgId, provider: row.provider, error })
      return false
    }
  }

  /**
   * Finds the batch whose creation had no known outcome. Returns null when it is not found; a batch that its provider certainly does not have then ends, and
   * any other waits until it is overdue.
   */
  async #recovered(claimed: Claimed, account: ProviderAccount): Promise<string | null> {
    const { row, claim } = claimed
    const { db, nowMs } = this.#deps
    const found = await this.#found(claimed, account)
    if (found !== null && found !== 'unclear') {
      await db.exec(setUpstream, row.id, found.id, found.isEnded ? 'in_progress' : found.status, new Date(nowMs()))
      return found.id
    }
    const isRefused = found === null && nowMs() - row.admittedAt.getTime() > unknownMs
    if (isRefused || this.#isOverdue(row)) await this.#settlement.giveUp(row, claim)
    else await this.#wait(claimed, null, false)
    return null
  }

  /**
   * Looks for a batch at its provider. Null means that it is certainly not there. In Anthropic's format nothing marks a batch, so one counts as found when it is
   * the only one that it can be: a wrong one would show the results of somebody else.
   */
  async #found({ row, signal }: Claimed, account: ProviderAccount): Promise<RemoteBatch | 'unclear' | null> {
    const { id, provider, lines } = row
    const admittedAtMs = row.admittedAt.getTime()
    if (row.format === 'openai') return findMarked(account, id, admittedAtMs, signal)
    const alike = await findAlike(account, lines, admittedAtMs, signal)
    if (alike.length === 0) return null
    const ids = alike.map(each => each.id)
    const [from, to] = [-unknownMs, unknownMs].map(ms => new Date(admittedAtMs + ms)) as [Date, Date]
    const { taken, rivals } = await this.#deps.db.one(findRivals, id, ids, provider, lines, from, to)
    const free = alike.filter(each => !taken.includes(each.id))
    const [only] = free
    if (only === undefined) return null
    return free.length === 1 && rivals === 0 ? only : 'unclear'
  }

  #isOverdue({ expiresAt }: BatchRow): boolean {
    return this.#deps.nowMs() > expiresAt.getTime() + graceMs
  }

  /** Returns true for a batch that has failed for so long that it is not waited for any more. */
  #isLost({ expiresAt }: BatchRow): boolean {
    return this.#deps.nowMs() > expiresAt.getTime() + lostMs
  }

  /**
   * Returns true when waiting does not help. A failure says little: the gateway may have been down for days, and a provider keeps results for weeks. So the
   * provider must say that it does not have the batch, or the key must be gone, or a week must have passed.
   */
  #isHopeless({ row, signal }: Claimed, error: unknown): boolean {
    if (signal.aborted || error instanceof DatabaseUnavailableError) return false
    const isGone = error instanceof AccountGoneError || (error instanceof ProviderRefusedError && goneStatuses.has(error.status))
    return this.#isLost(row) || (isGone && this.#isOverdue(row))
  }

  async #failed(claimed: Claimed, error: unknown): Promise<void> {
    const { row, claim } = claimed
    if (this.#isHopeless(claimed, error)) await this.#settlement.giveUp(error instanceof AccountGoneError ? withoutKey(row) : row, claim)
    else await this.#wait(claimed, null, false)
  }

  /** Plans the next look. */
  async #wait({ row, claim }: Claimed, remote: RemoteBatch | null, isCancelled: boolean): Promise<void> {
    const { db, config, nowMs } = this.#deps
    const now = nowMs()
    // A cancel that was not taken is sent again soon.
    const times = isCancelDue(row) && !isCancelled ? 1 : Math.min(pollMostTimes, pollGrowth ** Math.min(row.polls, 20))
    // An ended batch in a place for cancels is charged immediately, in another place. Its clients see the end when it is charged.
    const isEnded = remote?.isEnded === true
    const next = new Date(now + (isEnded ? 0 : Math.round(config.BATCH_POLL_MS * times)))
    const status = isEnded ? null : (remote?.status ?? null)
    await db.exec(endClaim, row.id, claim, next, status, remote?.completed ?? null, remote?.failed ?? null, isCancelled ? new Date(now) : null)
  }
}
