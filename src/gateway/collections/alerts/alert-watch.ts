/** Evaluates the alerts of a collection after each round of canaries, and sends notifications. */
import type { Clock } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { GatewayError } from '../../../platform/errors.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { Mail } from '../../mail/mail.ts'
import { emitAt, eventId } from '../../webhooks/events/events.ts'
import { takeAlertMail } from '../canaries/canary-budget.ts'
import type { WrittenRound } from '../canaries/canary-rounds.ts'
import { stepKey } from '../monitoring/health.ts'
import { type AlertRow, alertReaders, lockAlerts, noteAlert, sumChecks } from './alert-queries.ts'
import { judge, type Reading, type Verdict } from './alert-rules.ts'

export interface AlertWatchDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly mail: Pick<Mail, 'enqueue'>
  readonly baseUrl: () => string
  readonly windowMs: number
  /** The setting ALERT_COOLDOWN_S. */
  readonly cooldownMs: number
}

/** Returns the window of alerts in milliseconds. At least three rounds must fit into the window. Otherwise no alert could ever fire. */
export const alertWindowMs = (windowS: number, everyS: number): number => Math.max(windowS, Math.ceil(everyS * 3.5)) * 1000

/**
 * Evaluates every alert of the collection, in the transaction that wrote a round. The transaction locks the alerts, so each crossing is reported
 * once, whatever the number of processes. Mail and webhooks are sent if, and only if, the round is written.
 */
export async function watchAlerts(tx: Tx, round: WrittenRound, deps: AlertWatchDeps): Promise<void> {
  const { orgId, id } = round.collection
  const alerts = await tx.many(lockAlerts, orgId, id)
  if (alerts.length === 0) return
  const now = new Date(deps.clock.nowMs())
  const steps = new Set(round.steps.map(stepKey))
  const sums = await tx.many(sumChecks, orgId, id, new Date(now.getTime() - deps.windowMs))
  const figures = sums.filter(({ model, pinned }) => steps.has(stepKey(pinned === '' ? { model } : { model, provider: pinned })))
  for (const alert of alerts) {
    const verdict = judge(alert, figures, now, deps.cooldownMs)
    const isChanged = verdict.firingSince?.getTime() !== alert.firingSince?.getTime() || verdict.notifiedAt?.getTime() !== alert.notifiedAt?.getTime()
    if (isChanged) await tx.exec(noteAlert, orgId, alert.id, verdict.firingSince, verdict.notifiedAt)
    if (verdict.notify !== null && verdict.reading !== null) await notify(tx, { round, alert, state: verdict.notify, reading: verdict.reading, now }, deps)
  }
}

interface Notice {
  readonly round: WrittenRound
  readonly alert: AlertRow
  readonly state: NonNullable<Verdict['notify']>
  readonly reading: Reading
  readonly now: Date
}

async function notify(tx: Tx, notice: Notice, deps: AlertWatchDeps): Promise<void> {
  if (notice.alert.channel === 'webhook') return notifyWebhooks(tx, notice, deps)
  return notifyPeople(tx, notice, deps)
}

async function notifyWebhooks(tx: Tx, { round, alert, state, reading, now }: Notice, { ids, windowMs }: AlertWatchDeps): Promise<void> {
  const atMs = now.getTime()
  const event = {
    id: eventId(ids, atMs),
    orgId: round.collection.orgId,
    type: 'collection.alert' as const,
    atMs,
    data: {
      alert_id: alert.id,
      collection_id: round.collection.id,
      state,
      metric: alert.metric,
      threshold: alert.threshold,
      value: roundedValue(reading.value),
      model: reading.model,
      provider: reading.pinned === '' ? null : reading.pinned,
      checks: reading.checks,
      window_s: windowMs / 1000,
    },
  }
  await emitAt(tx, event, alert.target)
}

async function notifyPeople(tx: Tx, { round, alert, state, reading, now }: Notice, { mail, baseUrl, windowMs }: AlertWatchDeps): Promise<void> {
  const { orgId } = round.collection
  const step = reading.pinned === '' ? reading.model : `${reading.model} on ${reading.pinned}`
  const link = `${baseUrl()}/auth?return_to=${encodeURIComponent(`/me/collections/${round.slug}/health`)}`
  for (const { userId, email, orgName } of await tx.many(alertReaders, orgId, alert.target)) {
    const letter = {
      orgId,
      to: email,
      template: 'collection_alert',
      data: {
        orgName,
        collection: round.name,
        state,
        metric: alert.metric === 'error_rate' ? 'error rate' : 'p95 latency',
        value: valueText(alert.metric, reading.value),
        threshold: valueText(alert.metric, alert.threshold),
        step,
        minutes: String(Math.round(windowMs / 60_000)),
        link,
      },
      onceKey: `collection_alert:${alert.id}:${now.getTime()}:${state}:${userId}`,
    } as const
    if (!(await takeAlertMail(tx, orgId, now.getTime()))) return
    // An invalid address must not prevent the round.
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}

const roundedValue = (value: number): number => Math.round(value * 10_000) / 10_000

/** Formats a value for people: a share as a percentage. */
const valueText = (metric: AlertRow['metric'], value: number): string =>
  metric === 'error_rate' ? `${Math.round(value * 1000) / 10} %` : `${Math.round(value)} ms`
