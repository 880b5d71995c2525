import { statement } from '../../../platform/db/db.ts'

/** Touches one row when the outage is not known yet, none otherwise. Waits for another process that tells of the same one. */
export const beginOutage = statement<[route: string, now: Date, openUntil: Date]>(
  'routing.begin_outage',
  `insert into circuit_outages (route, opened_at, told_at, open_until) values ($1::text, $2::timestamptz, $2::timestamptz, $3::timestamptz)
   on conflict (route) do nothing`,
)

/** The circuit is open again, or still. An outage that another process has ended meanwhile stays ended, or the next one would not be told. */
export const noteOutage = statement<[route: string, now: Date, openUntil: Date]>(
  'routing.note_outage',
  `update circuit_outages set told_at = greatest(told_at, $2::timestamptz), open_until = greatest(open_until, $3::timestamptz) where route = $1::text`,
)

export const endOutage = statement<[route: string]>('routing.end_outage', `delete from circuit_outages where route = $1::text`)

export const deleteOldOutages = statement<[toldBefore: Date]>('routing.delete_old_outages', `delete from circuit_outages where told_at < $1::timestamptz`)

export const listOutages = statement<[toldSince: Date], { route: string; openUntil: Date }>(
  'routing.list_outages',
  `select route, open_until as "openUntil" from circuit_outages where told_at >= $1::timestamptz order by route`,
)
