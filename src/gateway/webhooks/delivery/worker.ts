import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { openWebhookSecret } from '../webhook-secret.ts'
import { attemptDelivery, type DeliveryDeps } from './delivery.ts'
import { type ClaimedDelivery, claimDeliveries, endDeliveriesOfClosed, endpointsWithWork, lockOpenEndpoints, type OpenEndpoint } from './delivery-queries.ts'
import { type DeliverySlot, DeliverySlots, type FreeSlots } from './delivery-slots.ts'
import type { Outcomes } from './outcomes.ts'
import { pauseMaxMs, type RetrySchedule } from './schedule.ts'

export interface DeliveryWorkerDeps extends DeliveryDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly outcomes: Outcomes
  readonly schedule: RetrySchedule
  /** The setting WEBHOOK_POLL_MS. */
  readonly pollMs: number
  /** The setting WEBHOOK_CONCURRENCY: the maximum number of concurrent deliveries to one endpoint, over all processes. */
  readonly concurrency: number
  /** How long `stop` waits for running attempts, in milliseconds. */
  readonly stopGraceMs: number
  /** Maximum number of running attempts of this process at fast endpoints. */
  readonly places?: number | undefined
}

/** Maximum number of endpoints that one poll returns. */
const endpointsMax = 100
/**
 * Shortest wait from the end of an attempt to the next poll, in milliseconds. When the last poll took long, the wait is half its duration instead.
 * Several attempts that end together cause one poll.
 */
const wakeMs = 5
/** Time between two polls that also search for deliveries that wait too long because a clock was set back. */
const thoroughEveryMs = 60_000
/** A claim lasts this much longer than its attempt, so that the result can be recorded. */
const leaseMarginMs = 5_000
const closedBatch = 5_000
/** How long a delivery waits when this process cannot open its signing secret. */
const unsignedWaitMs = 60_000
/** A receiver is slow when it takes longer than this share of the timeout. */
const slowShare = 1 / 15
/** Pause before a failed write of a result is repeated, and how long the write is repeated. */
const noteRetryMs = 500
const noteForMs = 5 * 60_000

/**
 * Sends deliveries. Every process runs a worker, and each worker claims other deliveries. A delivery is sent at least once. It is sent again, with
 * the same id and bytes, when a process dies after the receiver's reply and before the reply is recorded. Deliveries to one endpoint start in the
 * order of their events, up to the endpoint's concurrency. Endpoints do not wait for each other, and slow endpoints do not use the slots of fast
 * ones. Decision 0294 gives the reasons.
 */
export class DeliveryWorker {
  readonly #deps: DeliveryWorkerDeps
  readonly #leaseMs: number
  readonly #stop = new AbortController()
  readonly #cut = new Cancellation()
  readonly #places: DeliverySlots
  readonly #underWay = new Set<Promise<void>>()
  #pass: Promise<void> | null = null
  #isWakePlanned = false
  #lookMs = 0
  #nextThoroughMs = Number.NEGATIVE_INFINITY

  constructor(deps: DeliveryWorkerDeps) {
    this.#deps = deps
    this.#leaseMs = 2 * deps.timeoutMs + leaseMarginMs
    this.#places = new DeliverySlots({ clock: deps.clock, slowMs: deps.timeoutMs * slowShare, places: deps.places })
  }

  /**
   * Polls every WEBHOOK_POLL_MS. The returned function stops the polling, waits a limited time for running attempts, and returns the others
   * to the queue.
   */
  start(): () => Promise<void> {
    const { clock, pollMs, stopGraceMs } = this.#deps
    const stopTimer = clock.every(pollMs, () => this.#look())
    return async () => {
      stopTimer()
      this.#stop.abort()
      const stopGrace = clock.after(stopGraceMs, () => this.#cut.abort(new Error('the process stops')))
      await this.#pass
      await Promise.all(this.#underWay)
      stopGrace()
    }
  }

  #look(): void {
    if (this.#pass !== null || this.#stop.signal.aborted) return
    const { clock } = this.#deps
    const begunMs = clock.monotonicMs()
    this.#pass = this.#sendDue()
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.log.warn('webhook_poll_failed', { error })
      })
      .finally(() => {
        this.#pass = null
        this.#lookMs = clock.monotonicMs() - begunMs
      })
  }

  /** Plans a poll soon, because a slot has become free. */
  #wake(): void {
    if (this.#isWakePlanned || this.#stop.signal.aborted) return
    this.#isWakePlanned = true
    this.#deps.clock.after(Math.max(wakeMs, Math.min(this.#lookMs / 2, this.#deps.pollMs)), () => {
      this.#isWakePlanned = false
      if (this.#pass === null) this.#look()
      else this.#wake()
    })
  }

  /** Polls once and starts the deliveries that it claims. */
  async #sendDue(): Promise<void> {
    const { db, clock, concurrency, schedule } = this.#deps
    const places = this.#places
    places.learn()
    if (places.isFull) return
    const nowMs = clock.nowMs()
    const isThorough = clock.monotonicMs() >= this.#nextThoroughMs
    if (isThorough) this.#nextThoroughMs = clock.monotonicMs() + thoroughEveryMs
    const times = [new Date(nowMs), new Date(nowMs + pauseMaxMs), concurrency, isThorough, new Date(nowMs + schedule.furthestMs)] as const
    const found = await db.many(endpointsWithWork, ...times, places.leftOut(), endpointsMax)
    const closed = found.filter(({ isClosed }) => isClosed).map(({ endpointId }) => endpointId)
    if (closed.length > 0) await db.exec(endDeliveriesOfClosed, closed, new Date(nowMs), closedBatch)
    const open = found.filter(({ isClosed }) => !isClosed).map(({ endpointId }) => endpointId)
    let begun = 0
    for (const room of places.roomsFor(open, concurrency)) begun += await this.#claim(room, times)
    // If the poll returned its maximum, more endpoints may be waiting.
    if (begun > 0 && found.length === endpointsMax) this.#wake()
  }

  /** Claims and starts deliveries of these endpoints. Returns the number of started deliveries. */
  async #claim(
    { endpointIds, perEndpoint, limit }: FreeSlots,
    times: readonly [now: Date, pauseFurthest: Date, concurrency: number, isThorough: boolean, retryFurthest: Date],
  ): Promise<number> {
    const { db, clock, ids } = this.#deps
    const claim = ids.uuidv7(clock.nowMs())
    const { endpoints, deliveries } = await db.tx(async tx => {
      const locked = await tx.many(lockOpenEndpoints, endpointIds)
      const of = locked.map(({ id }) => id)
      const claimed = of.length === 0 ? [] : await tx.many(claimDeliveries, ...times, of, perEndpoint, limit, claim, this.#leaseMs)
      return { endpoints: new Map(locked.map(endpoint => [endpoint.id, endpoint])), deliveries: claimed }
    })
    deliveries.sort((a, b) => (a.eventSeq < b.eventSeq ? -1 : 1))
    for (const delivery of deliveries) this.#begin(delivery, endpoints.get(delivery.endpointId), claim)
    // A claimed delivery that is due later shows that a clock was set back. The next poll is thorough again, because there may be more such
    // deliveries.
    if (deliveries.some(({ dueAt }) => dueAt > times[0])) this.#nextThoroughMs = Number.NEGATIVE_INFINITY
    return deliveries.length
  }

  #begin(delivery: ClaimedDelivery, endpoint: OpenEndpoint | undefined, claim: string): void {
    const place = this.#places.take(delivery.endpointId)
    this.#deps.outcomes.onChanged(delivery.orgId, delivery.endpointId)
    const attempt = this.#send(delivery, endpoint, claim, place)
      .catch((error: unknown) => this.#deps.log.warn('webhook_outcome_lost', { orgId: delivery.orgId, error }))
      .finally(() => {
        place.leave()
        this.#underWay.delete(attempt)
        this.#wake()
      })
    this.#underWay.add(attempt)
  }

  async #send(delivery: ClaimedDelivery, endpoint: OpenEndpoint | undefined, claim: string, place: DeliverySlot): Promise<void> {
    const { outcomes, log, schedule, clock } = this.#deps
    const { body } = delivery
    if (body === null) return outcomes.forgo(delivery, claim, 'event_not_kept')
    // A delivery during which processes die must not be tried forever.
    if (delivery.attempt > schedule.waitsMs.length + 1) return outcomes.forgo(delivery, claim, 'outcomes_lost')
    const secret = endpoint === undefined ? null : this.#secretOf(endpoint)
    if (endpoint === undefined || secret === null) {
      log.error('webhook_secret_does_not_open', { orgId: delivery.orgId })
      return outcomes.postpone(delivery, claim, unsignedWaitMs)
    }
    const [atMs, begunMs] = [clock.nowMs(), clock.monotonicMs()]
    const result = await attemptDelivery(this.#deps, { ...delivery, body, url: endpoint.url, secret }, this.#cut)
    place.answered()
    const time = { atMs, tookMs: Math.round(clock.monotonicMs() - begunMs) }
    await this.#note(() => outcomes.record(delivery, claim, result, time))
  }

  /** Writes a result. While the database is unavailable, the write is repeated, so that a delivery that has arrived is not sent again. */
  async #note(write: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps
    const untilMs = clock.monotonicMs() + noteForMs
    for (let tried = 1; ; tried++) {
      try {
        return await write()
      } catch (error) {
        if (this.#stop.signal.aborted || clock.monotonicMs() >= untilMs) throw error
        if (tried === 1) log.warn('webhook_outcome_waits', { error })
        await clock.sleep(noteRetryMs, this.#stop.signal).catch(() => undefined)
      }
    }
  }

  /** Returns the signing secret. Returns null when the secret was sealed with another master key. That is not a failure of the receiver. */
  #secretOf({ id, secretSealed }: OpenEndpoint): string | null {
    try {
      return openWebhookSecret(this.#deps.sealer, id, secretSealed)
    } catch {
      return null
    }
  }
}
