import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import type { Webhooks } from '../../webhooks/webhooks.ts'
import { noCollection, ownCollection } from '../monitoring/monitor.ts'
import {
  type AlertChannel,
  type AlertMetric,
  type AlertRow,
  countAlerts,
  deleteAlert,
  findMemberAddress,
  insertAlert,
  listAlerts,
  listHearing,
  lockForAlert,
} from './alert-queries.ts'

export interface AlertsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly webhooks: Pick<Webhooks, 'ensure'>
  /** The setting ALERTS_MAX. */
  readonly alertsMax: number
  /** The setting MONITOR_TIMEOUT_S. */
  readonly timeoutS: number
  /** True when this installation sends mail. */
  readonly sendsMail: boolean
}

export interface AlertParams {
  readonly metric: AlertMetric
  readonly threshold: number
  readonly channel: AlertChannel
  readonly target: string | null
}

export interface HeardAlert extends AlertRow {
  /** False when nobody would receive the alert: this installation sends no mail, or no webhook receives the alert any more. */
  readonly isHeard: boolean
}

export interface NewAlert {
  readonly alert: AlertRow
  /** The secret of a webhook that was created for the alert. It is shown only here. */
  readonly secret: string | null
  readonly webhookId: number | null
  /** A hint for the person who created the alert. */
  readonly note: string | null
}

const noAlert = () => fail('not_found', { message: 'There is no such alert of this collection. GET …/alerts lists them.' })

/** The alerts of collections: who is notified when a collection fails or is slow. */
export class Alerts {
  readonly #deps: AlertsDeps
  constructor(deps: AlertsDeps) {
    this.#deps = deps
  }

  /** Returns the alerts, oldest first. `isHeard` says whether anybody would receive the alert. Throws `not_found`. */
  async list(orgId: number, slug: string): Promise<readonly HeardAlert[]> {
    const { db, sendsMail } = this.#deps
    const { id } = await ownCollection(db, orgId, slug)
    const [alerts, hearing] = await Promise.all([db.many(listAlerts, orgId, id), db.many(listHearing, orgId)])
    const isHeard = ({ channel, target }: AlertRow): boolean => (channel === 'email' ? sendsMail : hearing.some(({ url }) => target === null || url === target))
    return alerts.map(alert => ({ ...alert, isHeard: isHeard(alert) }))
  }

  /**
   * Creates an alert. For the channel `email`, the target is the address of a member. For the channel `webhook`, the target is an https URL. The
   * organisation's webhook for that URL then receives alerts, and is created if it does not exist. Throws `not_found`, `bad_request`, `cap`.
   */
  async create(orgId: number, userId: number, slug: string, params: AlertParams): Promise<NewAlert> {
    const { db, sendsMail } = this.#deps
    const { id } = await ownCollection(db, orgId, slug)
    this.#checkThreshold(params)
    const target = params.target?.trim() === '' ? null : (params.target?.trim() ?? null)
    if (params.channel === 'email') {
      const address = target === null ? null : await this.#memberAddress(orgId, target)
      const alert = await db.tx(tx => this.#insert(tx, orgId, userId, id, { ...params, target: address }))
      const note = sendsMail ? null : 'This installation sends no mail until its operator sets SMTP_URL. The alert waits for that.'
      return { alert, secret: null, webhookId: null, note }
    }
    if (target === null) {
      const alert = await db.tx(tx => this.#insert(tx, orgId, userId, id, { ...params, target }))
      return {
        alert,
        secret: null,
        webhookId: null,
        note: 'It is sent to the webhooks of the organisation that receive collection.alert. GET /me/webhooks lists them.',
      }
    }
    const { made, webhook, secret } = await this.#deps.webhooks.ensure(orgId, userId, target, 'collection.alert', (tx, url) =>
      this.#insert(tx, orgId, userId, id, { ...params, target: url }),
    )
    const note =
      secret === null
        ? 'The webhook of that URL receives it too.'
        : 'A webhook was made for that URL. Its secret, which signs what it is sent, is shown this once.'
    return { alert: made, secret, webhookId: webhook.id, note }
  }

  /** Removes an alert. Throws `not_found`. */
  async remove(orgId: number, slug: string, alertId: string): Promise<void> {
    const { db } = this.#deps
    const { id } = await ownCollection(db, orgId, slug)
    const row = rowId(alertId)
    if (row === null || (await db.maybe(deleteAlert, orgId, id, row)) === null) throw noAlert()
  }

  async #insert(tx: Tx, orgId: number, userId: number, collectionId: number, { metric, threshold, channel, target }: AlertParams): Promise<AlertRow> {
    const { clock, alertsMax } = this.#deps
    if ((await tx.maybe(lockForAlert, orgId, collectionId)) === null) throw noCollection()
    const { count } = await tx.one(countAlerts, orgId, collectionId)
    if (count >= alertsMax) throw fail('cap', { message: `A collection may have ${alertsMax} alerts. Delete one first.` })
    return tx.one(insertAlert, orgId, collectionId, metric, threshold, channel, target, userId, new Date(clock.nowMs()))
  }

  #checkThreshold({ metric, threshold }: AlertParams): void {
    if (metric === 'error_rate' && !(threshold >= 0 && threshold <= 1))
      throw fail('bad_request', { message: '"threshold" of error_rate is a share of failed canaries from 0 to 1: write 5 % as 0.05.' })
    const maxMs = this.#deps.timeoutS * 1000
    if (metric === 'latency_p95' && !(threshold >= 1 && threshold <= maxMs))
      throw fail('bad_request', {
        message: `"threshold" of latency_p95 is in milliseconds, from 1 to ${maxMs}: a canary that takes longer is given up and counts for error_rate.`,
      })
  }

  async #memberAddress(orgId: number, target: string): Promise<string> {
    const found = target.length > 320 ? null : await this.#deps.db.maybe(findMemberAddress, orgId, target)
    if (found === null)
      throw fail('bad_request', {
        message: '"target" of channel email is the address of a member of this organisation: GET /me/members lists them. Leave it out to tell the owners.',
      })
    return found.email
  }
}
