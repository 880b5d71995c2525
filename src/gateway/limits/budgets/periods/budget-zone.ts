/** The time zone of an organisation's budgets, as its owner sets and reads it. */
import type { Db } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail } from '../../../../platform/errors.ts'
import { capChanged } from '../budgets.ts'
import { defaultZone, type EndingPeriod } from './period.ts'
import { findZones, lockZones, setZones, zonesOf } from './zone-queries.ts'
import { BudgetCalendar, type BudgetZones, defaultZones, zoneAt, zoneOfText } from './zones.ts'

export interface BudgetZoneDeps {
  readonly db: Db
  readonly controlLog: ControlLog
  /** Returns the time by which periods end. */
  readonly nowMs: () => number
}

/** The zone of an organisation, and the running periods. */
export interface BudgetZoneView {
  readonly zone: string
  readonly running: readonly { readonly period: EndingPeriod; readonly zone: string; readonly endsAtMs: number }[]
}

/** Sets and reads the time zones of organisations. */
export class BudgetZoneSetting {
  readonly #deps: BudgetZoneDeps
  readonly #calendar = new BudgetCalendar()

  constructor(deps: BudgetZoneDeps) {
    this.#deps = deps
  }

  async get(orgId: number): Promise<BudgetZoneView> {
    const row = await this.#deps.db.maybe(findZones, orgId)
    return this.#viewOf((row === null ? null : zonesOf(row)) ?? defaultZones)
  }

  /** Sets the zone. The running periods keep theirs until they end. Throws `bad_request` for a text that names no zone. */
  async set(orgId: number, text: string): Promise<BudgetZoneView> {
    const zone = zoneOfText(text)
    if (zone === null)
      throw fail('bad_request', {
        message: 'time_zone must be a name of the IANA time zone database, such as Asia/Kolkata, Europe/Berlin or America/New_York.',
      })
    const { controlLog, nowMs } = this.#deps
    const zones = await controlLog.change(async tx => {
      const before = zonesOf(await tx.one(lockZones, orgId, defaultZone)) ?? defaultZones
      const after = this.#calendar.changed(before, zone, nowMs())
      const { day, week, month } = after.before
      const until = (untilMs: number | undefined): Date | null => (untilMs === undefined ? null : new Date(untilMs))
      await tx.exec(
        setZones,
        orgId,
        zone,
        day?.zone ?? null,
        until(day?.untilMs),
        week?.zone ?? null,
        until(week?.untilMs),
        month?.zone ?? null,
        until(month?.untilMs),
      )
      // The budgets of the organisation carry its zone in every cache.
      return { value: after, news: [{ kind: capChanged, ref: `${orgId}:org:${orgId}` }] }
    })
    return this.#viewOf(zones)
  }

  #viewOf(zones: BudgetZones): BudgetZoneView {
    const nowMs = this.#deps.nowMs()
    const running = (['month', 'week', 'day'] as const).map(period => ({
      period,
      zone: zoneAt(zones, period, nowMs),
      endsAtMs: this.#calendar.windowAt(zones, period, nowMs).endsAtMs,
    }))
    return { zone: zones.zone, running }
  }
}
