import { statement } from '../../../platform/db/db.ts'

export interface MaintenanceRow {
  readonly route: string
  readonly setBy: 'operator' | 'gateway'
  readonly reason: string
  readonly strikes: number
  readonly since: Date
  readonly until: Date
}

const columns = `route, set_by as "setBy", reason, strikes, since, until`

export const listMaintenance = statement<[after: Date], MaintenanceRow>(
  'routing.list_maintenance',
  `select ${columns} from route_maintenance where until > $1::timestamptz order by route`,
)

export const findMaintenance = statement<[route: string], MaintenanceRow>(
  'routing.find_maintenance',
  `select ${columns} from route_maintenance where route = $1::text`,
)

/** Locks all decisions about quarantines until the transaction ends. */
export const lockMaintenance = statement<[], { done: string }>(
  'routing.lock_maintenance',
  `select pg_advisory_xact_lock(hashtext('brigade.route_maintenance'))::text as "done"`,
)

export const saveMaintenance = statement<[route: string, setBy: string, reason: string, strikes: number, since: Date, until: Date]>(
  'routing.save_maintenance',
  `insert into route_maintenance (route, set_by, reason, strikes, since, until)
   values ($1::text, $2::text, $3::text, $4::int, $5::timestamptz, $6::timestamptz)
   on conflict (route) do update
     set set_by = excluded.set_by, reason = excluded.reason, strikes = excluded.strikes, since = excluded.since, until = excluded.until`,
)

export const deleteMaintenance = statement<[route: string], { until: Date }>(
  'routing.delete_maintenance',
  `delete from route_maintenance where route = $1::text returning until`,
)

export const deleteOldMaintenance = statement<[before: Date]>('routing.delete_old_maintenance', `delete from route_maintenance where until < $1::timestamptz`)
