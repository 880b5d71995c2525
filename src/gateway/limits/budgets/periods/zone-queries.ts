import { statement } from '../../../../platform/db/db.ts'
import type { EndingPeriod } from './period.ts'
import type { BudgetZones, FormerZone } from './zones.ts'

/** The zones of an organisation as columns. A null `zone` means that the organisation has set none. */
export interface ZonesRow {
  readonly zone: string | null
  readonly dayZone: string | null
  readonly dayUntil: Date | null
  readonly weekZone: string | null
  readonly weekUntil: Date | null
  readonly monthZone: string | null
  readonly monthUntil: Date | null
}

/** The columns of `ZonesRow` from a table `z`. */
export const zonesColumns = `z.zone as "zone", z.day_zone as "dayZone", z.day_until as "dayUntil", z.week_zone as "weekZone", z.week_until as "weekUntil",
     z.month_zone as "monthZone", z.month_until as "monthUntil"`

export const findZones = statement<[orgId: number], ZonesRow>('limits.find_zones', `select ${zonesColumns} from budget_zones z where z.org_id = $1::int`)

/** Makes the row of an organisation if it does not exist, and locks it. */
export const lockZones = statement<[orgId: number, zone: string], ZonesRow>(
  'limits.lock_zones',
  `insert into budget_zones as z (org_id, zone) values ($1::int, $2::text) on conflict (org_id) do update set zone = z.zone returning ${zonesColumns}`,
)

export const setZones = statement<
  [
    orgId: number,
    zone: string,
    dayZone: string | null,
    dayUntil: Date | null,
    weekZone: string | null,
    weekUntil: Date | null,
    monthZone: string | null,
    monthUntil: Date | null,
  ]
>(
  'limits.set_zones',
  `update budget_zones set zone = $2::text, day_zone = $3::text, day_until = $4::timestamptz, week_zone = $5::text, week_until = $6::timestamptz,
     month_zone = $7::text, month_until = $8::timestamptz
   where org_id = $1::int`,
)

/** Returns the zones of a row. Null when the organisation has set none. */
export function zonesOf(row: ZonesRow): BudgetZones | null {
  if (row.zone === null) return null
  const former = (zone: string | null, until: Date | null): FormerZone | null => (zone === null || until === null ? null : { zone, untilMs: until.getTime() })
  const before: Record<EndingPeriod, FormerZone | null> = {
    day: former(row.dayZone, row.dayUntil),
    week: former(row.weekZone, row.weekUntil),
    month: former(row.monthZone, row.monthUntil),
  }
  return { zone: row.zone, before }
}
