/**
 * Records the result of an attempt in its delivery and at its endpoint. Notifies the owners when the endpoint is disabled. Decision 0298
 * gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { GatewayError } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { Mail } from '../../mail/mail.ts'
import { type AttemptResult, goneError } from './delivery.ts'
import { endOpenDeliveries, type LoggedAttempt } from './delivery-list-queries.ts'
import type { ClaimedDelivery } from './delivery-queries.ts'
import { acknowledge, countFailure, disableEndpoint, lockEndpoint, ownersOf, putBack, recordFailure } from './outcome-queries.ts'
import { pauseMs, type RetrySchedule, retryWaitMs } from './schedule.ts'

export interface OutcomesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly mail: Pick<Mail, 'enqueue'>
  readonly schedule: RetrySchedule
  /** The setting WEBHOOK_DISABLE_FAILURES. */
  readonly failuresMax: number
  readonly baseUrl: () => string
  /** Is called in the transaction that disables an endpoint. It writes the audit line. */
  readonly onDisabled: (tx: Tx, orgId: number, endpointId: number) => Promise<void>
}

/** When an attempt began, in Unix milliseconds, and how long it took. */
export interface AttemptTime {
  readonly atMs: number
  readonly tookMs: number
}

type Failure = Extract<AttemptResult, { kind: 'failed' }>

/** The `disabled_reason` of an endpoint that the gateway disabled. */
type DisabledReason = 'too_many_failures' | 'gone'

/** An endpoint that is being disabled. */
interface GivenUp {
  readonly orgId: number
  readonly orgName: string
  readonly endpointId: number
  readonly url: string
  readonly failures: number
  readonly reason: DisabledReason
  /** The error of the last failure. */
  readonly last: string
}

/** Records the results of claimed deliveries. A result with an outdated claim changes nothing. */
export class Outcomes {
  readonly #deps: OutcomesDeps
  /** Is called after a delivery of an endpoint was claimed or has a result. */
  onChanged: (orgId: number, endpointId: number) => void = () => undefined
  constructor(deps: OutcomesDeps) {
    this.#deps = deps
  }

  /** Records the result of an attempt, and adds the attempt to the log of the delivery. */
  async record(delivery: ClaimedDelivery, claim: string, result: AttemptResult, time: AttemptTime): Promise<void> {
    const { db, clock } = this.#deps
    const { orgId, endpointId, id } = delivery
    if (result.kind === 'acknowledged')
      await db.exec(acknowledge, orgId, endpointId, id, claim, result.code, new Date(clock.nowMs()), logEntry(delivery, result, time))
    else if (result.kind === 'cut') await this.postpone(delivery, claim, 0)
    else await db.tx(tx => this.#fail(tx, delivery, claim, result, logEntry(delivery, result, time)))
    this.onChanged(orgId, endpointId)
  }

  /** Returns a claimed delivery to the queue when the gateway itself could not make the attempt. */
  async postpone({ orgId, endpointId, id }: ClaimedDelivery, claim: string, delayMs: number): Promise<void> {
    await this.#deps.db.exec(putBack, orgId, id, claim, new Date(this.#deps.clock.nowMs() + delayMs))
    this.onChanged(orgId, endpointId)
  }

  /** Gives a delivery up without an attempt. */
  async forgo({ orgId, endpointId, id }: ClaimedDelivery, claim: string, error: 'event_not_kept' | 'outcomes_lost'): Promise<void> {
    await this.#deps.db.exec(recordFailure, orgId, id, claim, 'dead', null, error, null, new Date(this.#deps.clock.nowMs()), null)
    this.onChanged(orgId, endpointId)
  }

  async #fail(
    tx: Tx,
    { orgId, endpointId, id, attempt }: ClaimedDelivery,
    claim: string,
    { code, error, retryAfterMs }: Failure,
    entry: string,
  ): Promise<void> {
    const { clock, ids, schedule, failuresMax } = this.#deps
    const endpoint = await tx.maybe(lockEndpoint, orgId, endpointId)
    const nowMs = clock.nowMs()
    const failures = (endpoint?.failures ?? 0) + 1
    const reason = error === goneError ? 'gone' : failures >= failuresMax ? 'too_many_failures' : null
    const waitMs = endpoint?.enabled && reason === null ? retryWaitMs(schedule, attempt, ids.random(), retryAfterMs) : null
    const dueAt = waitMs === null ? null : new Date(nowMs + waitMs)
    const noted = await tx.exec(recordFailure, orgId, id, claim, dueAt === null ? 'dead' : 'failed', code, error, dueAt, new Date(nowMs), entry)
    if (noted === 0 || !endpoint?.enabled) return
    const pause = pauseMs(failures, retryAfterMs)
    if (reason === null) await tx.exec(countFailure, orgId, endpointId, failures, pause === 0 ? null : new Date(nowMs + pause))
    else await this.#disable(tx, { ...endpoint, orgId, endpointId, failures, reason, last: code === null ? error : `HTTP ${code}` }, nowMs)
  }

  async #disable(tx: Tx, given: GivenUp, nowMs: number): Promise<void> {
    const { orgId, endpointId, failures, reason } = given
    await tx.exec(disableEndpoint, orgId, endpointId, failures, reason)
    await tx.exec(endOpenDeliveries, orgId, endpointId, 'endpoint_disabled', new Date(nowMs))
    await this.#notifyOwners(tx, given, nowMs)
    await this.#deps.onDisabled(tx, orgId, endpointId)
    this.#deps.log.warn('webhook_disabled', { orgId, code: reason, count: failures })
  }

  async #notifyOwners(tx: Tx, given: GivenUp, nowMs: number): Promise<void> {
    const { orgId, orgName, endpointId, url, failures, reason, last } = given
    const why = reason === 'gone' ? 'its receiver answered that it is gone (HTTP 410)' : `${failures} deliveries in a row failed (the last one: ${last})`
    // The mail contains only the host of the URL, because path and query may contain a token of the receiver.
    const data = { orgName, endpointId, host: new URL(url).host, why, link: `${this.#deps.baseUrl()}/auth?return_to=%2Fme%2Fwebhooks` }
    for (const { userId, email } of await tx.many(ownersOf, orgId)) {
      const onceKey = `webhook_disabled:${endpointId}:${nowMs}:${userId}`
      // An invalid mail address must not keep the endpoint enabled. The endpoint's `disabled_reason` shows the cause too.
      await this.#deps.mail.enqueue(tx, { orgId, to: email, template: 'webhook_disabled', data, onceKey }).catch((error: unknown) => {
        if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
      })
    }
  }
}

/** Returns one attempt as the log of a delivery stores it. */
function logEntry({ attempts }: ClaimedDelivery, result: Exclude<AttemptResult, { kind: 'cut' }>, { atMs, tookMs }: AttemptTime): string {
  const entry: LoggedAttempt = { n: attempts, at: atMs, ms: tookMs, code: result.code, error: result.kind === 'failed' ? result.error : null }
  return JSON.stringify(entry)
}
