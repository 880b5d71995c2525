/**
 * Counts the prompts that went to a provider to have their tokens counted. These are no calls and nothing is charged, but the provider received
 * the prompts.
 */
import type { Clock } from '../../../platform/clock.ts'
import { type Db, statement } from '../../../platform/db/db.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import type { Route } from '../../catalog/model.ts'
import { modelsMax, otherModels } from '../../usage/events/bounded-names.ts'
import { placeOf } from '../charge/residency.ts'

/** Returns a function that records that a prompt is about to be sent to a route. It rejects when the record fails; the prompt must then not be sent. */
export function tokenCountsIn(db: Db, clock: Clock): (orgId: number, route: Route) => Promise<void> {
  return async (orgId, route) => {
    await db.exec(addTokenCount, orgId, istDay(clock.nowMs()), route.modelId, route.provider.id, placeOf(route))
  }
}

/** After `modelsMax` rows of an organisation and day, new models share one row. With a key of their own, callers choose ids of models freely. */
const addTokenCount = statement<[orgId: number, day: string, model: string, provider: string, residency: string]>(
  'inference.add_token_count',
  `insert into token_counts as c (org_id, day, model, provider, residency, requests)
   select $1::int, $2::date, case when exists (select from token_counts where org_id = $1::int and day = $2::date and model = $3::text)
       or (select count(*) from (select from token_counts where org_id = $1::int and day = $2::date limit ${modelsMax}) as known) < ${modelsMax}
     then $3::text else '${otherModels}' end, $4::text, $5::text, 1
   on conflict (org_id, day, model, provider, residency) do update set requests = c.requests + 1`,
)
