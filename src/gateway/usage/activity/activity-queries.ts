/** Statements for the activity report. They read sums by day, never single events. */
import { statement } from '../../../platform/db/db.ts'
import { keySums, namedModels } from '../reports/usage-queries.ts'
import { sumColumns, type TotalsRow } from '../reports/usage-totals.ts'

/** Sums by day and model, by model and provider, or by model. Null in a name means that the row sums over all values of that name. */
export type ActivityRow = TotalsRow & {
  readonly day: string | null
  readonly model: string
  readonly provider: string | null
  readonly byokRequests: bigint
}

const sums = `${sumColumns}, coalesce(sum(requests) filter (where byok), 0)::bigint as "byokRequests"`
const sets = 'group by grouping sets ((day, model), (model, provider), (model))'
const order = 'order by "day", sum(value_uinr) desc, sum(requests) desc, model, provider'

const selected = `select day as "day", model as "model", provider as "provider", ${sums} from used ${sets} ${order}`
const ofSpan = 'org_id = $1::int and day between $2::date and $3::date and ($4::text is null or model = $4::text)'

/** Sums of an organisation, or of one of its models. */
export const sumActivity = statement<[orgId: number, from: string, to: string, model: string | null, modelsMax: number], ActivityRow>(
  'usage.sum_activity',
  `${namedModels('usage_days', ofSpan, '$5::int')} ${selected}`,
)

/** Sums of one key (0 means calls without a key), or of one model of the key. */
export const sumActivityOfKey = statement<[orgId: number, from: string, to: string, model: string | null, modelsMax: number, keyId: number], ActivityRow>(
  'usage.sum_activity_of_key',
  `${namedModels('usage_days_by_key_model', `${ofSpan} and key_id = $6::int`, '$5::int')} ${selected}`,
)

/** Sums of one key. `keyId` is null for calls without a key. */
export type ActivityKeyRow = TotalsRow & { readonly keyId: number | null; readonly name: string | null; readonly revoked: boolean | null }

const named = (summed: string): string => `
   select nullif(s.key_id, 0) as "keyId", k.name as "name", case when k.id is not null then k.revoked_at is not null end as "revoked",
     s."requests", s."errors", s."promptTokens", s."completionTokens", s."valueUinr", s."costUinr", s."cachedTokens", s."cacheWriteTokens"
   from (${summed}) s left join api_keys k on k.org_id = $1::int and k.id = s.key_id order by s."valueUinr" desc, s."requests" desc, s.key_id`

/** A span, divided into whole weeks and the days around them. `weeksIn` makes it. */
type Weeks = [orgId: number, from: string, headTo: string, tailFrom: string, to: string]
const mostFirst = 'group by key_id order by sum(value_uinr) desc, sum(requests) desc, key_id'

/** Returns the keys with the highest value of usage in a span. */
export const topKeys = statement<[...Weeks, limit: number], ActivityKeyRow>(
  'usage.top_keys',
  named(`select key_id, ${sumColumns} from (${keySums('usage_days_by_key')}) as s ${mostFirst} limit $6::int`),
)

/** Returns the keys with the highest value of usage of one model. */
export const topKeysOfModel = statement<[...Weeks, limit: number, model: string], ActivityKeyRow>(
  'usage.top_keys_of_model',
  named(`select key_id, ${sumColumns} from (${keySums('usage_days_by_key_model', '$7::text')}) as s ${mostFirst} limit $6::int`),
)

/** Returns the models with the highest value of usage, by name. */
export const listModels = statement<[orgId: number, from: string, to: string, limit: number], { model: string }>(
  'usage.list_models',
  `select model as "model" from (
     select model from usage_days where org_id = $1::int and day between $2::date and $3::date group by model
     order by sum(value_uinr) desc, sum(requests) desc, model limit $4::int) as used order by 1`,
)

export const findKeyName = statement<[orgId: number, keyId: number], { name: string; revoked: boolean }>(
  'usage.find_key_name',
  'select name as "name", revoked_at is not null as "revoked" from api_keys where org_id = $1::int and id = $2::int',
)
