import { statement } from '../../../platform/db/db.ts'

/** Inserts the outage. Returns 1 when it is new, and 0 otherwise. Waits for a concurrent transaction of another process on the same route. */
export const beginOutage = statement<[route: string, now: Date, openUntil: Date]>(
  'routing.begin_outage',
  `insert into circuit_outages (route, opened_at, told_at, open_until) values ($1::text, $2::timestamptz, $2::timestamptz, $3::timestamptz)
   on conflict (route) do nothing`,
)

/**
 * Records that the circuit is open again, or still open. It does not insert an outage that another process has ended. Otherwise the next outage would
 * not count as new and would cause no event.
 */
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
