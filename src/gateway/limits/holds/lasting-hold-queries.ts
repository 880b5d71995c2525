/** Statements on holds that no process owns. They run under the row locks of `lockCounters`. */
import { statement } from '../../../platform/db/db.ts'

/** Writes the holds of an owner and adds them to `leased`, and counts units that are spent immediately. */
export const insertLastingHolds = statement<
  [owner: string, ids: readonly bigint[], amounts: readonly bigint[], spentIds: readonly bigint[], spent: readonly bigint[]]
>(
  'limits.insert_lasting_holds',
  `with held as materialized (select * from unnest($2::bigint[], $3::bigint[]) as h(counter_id, amount)),
   used as materialized (select * from unnest($4::bigint[], $5::bigint[]) as u(counter_id, amount)),
   put as (insert into lasting_holds (owner, counter_id, amount) select $1::text, counter_id, amount from held)
   update counters c set leased = c.leased + coalesce(h.amount, 0), spent = c.spent + coalesce(u.amount, 0)
   from (select counter_id from held union select counter_id from used) as touched
   left join held h on h.counter_id = touched.counter_id left join used u on u.counter_id = touched.counter_id
   where c.id = touched.counter_id`,
)

export const findLastingHolds = statement<[owner: string], { counterId: bigint }>(
  'limits.find_lasting_holds',
  `select counter_id as "counterId" from lasting_holds where owner = $1::text`,
)

/** Gives back the holds of an owner. */
export const deleteLastingHolds = statement<[owner: string]>(
  'limits.delete_lasting_holds',
  `with gone as (delete from lasting_holds where owner = $1::text returning counter_id, amount)
   update counters c set leased = c.leased - g.amount from gone g where c.id = g.counter_id`,
)

/** Takes back units that were spent immediately. The counter may be gone, because its day has ended. */
export const unspend = statement<[ids: readonly bigint[], amounts: readonly bigint[]]>(
  'limits.unspend',
  `update counters c set spent = greatest(0, c.spent - u.amount) from unnest($1::bigint[], $2::bigint[]) as u(counter_id, amount) where c.id = u.counter_id`,
)
