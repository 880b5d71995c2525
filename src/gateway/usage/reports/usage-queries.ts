/** Statements for the usage report and for the console's overview. They read sums by day, never single events. */
import { statement } from '../../../platform/db/db.ts'
import { otherModels } from '../events/bounded-names.ts'
import { sumColumns, type TotalsRow } from './usage-totals.ts'

/**
 * Returns the SQL of a subquery: sums by key for the whole weeks of a span, and for the days around them. The outer query adds them up by `key_id`.
 * Its parameters are the organisation, `from`, `headTo`, `tailFrom` and `to` (`weeksIn`). `day` is null in rows of weeks. `model` is the SQL of a
 * parameter. When it is left out, all models are included.
 */
export function keySums(daysTable: 'usage_days_by_key' | 'usage_days_by_key_model', model?: string): string {
  const columns = 'requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr, cached_tokens, cache_write_tokens'
  const ofModel = model === undefined ? '' : ` and model = ${model}`
  const days = (first: string, last: string): string =>
    `select key_id, day, ${columns} from ${daysTable} where org_id = $1::int${ofModel} and day between ${first}::date and ${last}::date`
  return `${days('$2', '$3')} union all ${days('$4', '$5')} union all
     select key_id, null, ${columns} from usage_weeks_by_key
     where org_id = $1::int and model = ${model ?? "''"} and week > $3::date and week < $4::date`
}

/**
 * Returns the CTEs `top` and `used`: the rows of a table of sums. The models with the highest value keep their names, at most as many as the SQL `limit`
 * says. All others are named `otherModels`.
 */
export const namedModels = (table: 'usage_days' | 'usage_days_by_key_model', where: string, limit: string): string => `with top as (
     select model from ${table} where ${where} group by model order by sum(value_uinr) desc, sum(requests) desc, model limit ${limit}),
   used as (
     select day, coalesce(top.model, '${otherModels}') as model, provider, byok, requests, errors, prompt_tokens, completion_tokens, cached_tokens,
       cache_write_tokens, value_uinr, cost_uinr
     from ${table} left join top using (model) where ${where})`

/** A row of a usage report. `part` says whether it is the row of a model, an agent or a day. The names of the other parts are null. */
export type StatementRow = TotalsRow & {
  readonly part: 'model' | 'agent' | 'day'
  readonly model: string | null
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly day: string | null
}

/**
 * Returns models and agent labels by value up to a limit, agents by value, and days in order. One statement reads one state of the database. The parts
 * therefore have the same sum even while flushes run.
 */
export const sumStatement = statement<[orgId: number, from: string, to: string, namesMax: number], StatementRow>(
  'usage.sum_statement',
  `(select 'model' as "part", model as "model", null::int as "agentId", null::text as "agentLabel", null::date as "day", ${sumColumns}
   from usage_days where org_id = $1::int and day between $2::date and $3::date group by model
   order by sum(value_uinr) desc, sum(requests) desc, model limit $4::int)
   union all
   select 'agent', null, nullif(agent_id, 0), null, null, ${sumColumns}
   from usage_days_by_agent where org_id = $1::int and day between $2::date and $3::date and agent_label = '' group by agent_id
   union all
   (select 'agent', null, null, agent_label, null, ${sumColumns}
   from usage_days_by_agent where org_id = $1::int and day between $2::date and $3::date and agent_label <> '' group by agent_label
   order by sum(value_uinr) desc, sum(requests) desc, agent_label limit $4::int)
   union all
   select 'day', null, null, null, day, ${sumColumns}
   from usage_days where org_id = $1::int and day between $2::date and $3::date group by day
   order by "part", "day", "valueUinr" desc, "requests" desc, "model", "agentId" nulls last, "agentLabel" nulls last`,
)

export const sumByDayAndProvider = statement<
  [orgId: number, from: string, to: string, limit: number],
  TotalsRow & { day: string; model: string; provider: string }
>(
  'usage.sum_by_day',
  `select day as "day", model as "model", provider as "provider", ${sumColumns}
   from usage_days where org_id = $1::int and day between $2::date and $3::date group by day, model, provider order by day, model, provider limit $4::int`,
)

export const sumByDayAndModel = statement<[orgId: number, from: string, to: string, modelsMax: number], TotalsRow & { day: string; model: string }>(
  'usage.sum_by_day_and_model',
  `${namedModels('usage_days', 'org_id = $1::int and day between $2::date and $3::date', '$4::int')}
   select day as "day", model as "model", ${sumColumns} from used group by day, model order by day, sum(value_uinr) desc, model`,
)

/**
 * Sums of one key for a span and for the last day of the span. `keyId` is null for calls without a key. `name` is null when there is no key, or the
 * key does not exist any more.
 */
export interface KeySumsRow extends TotalsRow {
  readonly keyId: number | null
  readonly name: string | null
  readonly prefix: string | null
  readonly revoked: boolean | null
  /** The number of keys that this row adds up. 0 in the row of one key. */
  readonly others: number
  readonly todayRequests: bigint
  readonly todayErrors: bigint
  readonly todayPromptTokens: bigint
  readonly todayCompletionTokens: bigint
  readonly todayValueUinr: bigint
  readonly todayCostUinr: bigint
  readonly todayCachedTokens: bigint
  readonly todayCacheWriteTokens: bigint
}

const today = (column: string): string => `coalesce(sum(${column}) filter (where day = $5::date), 0)::bigint`

const todayColumns = ['Requests', 'Errors', 'PromptTokens', 'CompletionTokens', 'ValueUinr', 'CostUinr', 'CachedTokens', 'CacheWriteTokens']
const sumNames = [...todayColumns.map(name => `"${name.charAt(0).toLowerCase()}${name.slice(1)}"`), ...todayColumns.map(name => `"today${name}"`)]

/**
 * Returns the calls without a key and the keys with the most usage in the span, up to a number of rows, and one row that adds up all others. When fewer
 * keys have usage, it also returns the newest active keys without usage.
 */
export const sumByKey = statement<[orgId: number, from: string, headTo: string, tailFrom: string, to: string, max: number], KeySumsRow>(
  'usage.sum_by_key',
  `with used as (
     select key_id, ${sumColumns}, ${today('requests')} as "todayRequests", ${today('errors')} as "todayErrors",
       ${today('prompt_tokens')} as "todayPromptTokens", ${today('completion_tokens')} as "todayCompletionTokens",
       ${today('value_uinr')} as "todayValueUinr", ${today('cost_uinr')} as "todayCostUinr",
       ${today('cached_tokens')} as "todayCachedTokens", ${today('cache_write_tokens')} as "todayCacheWriteTokens"
     from (${keySums('usage_days_by_key')}) as s group by key_id),
   ranked as (select used.*, row_number() over (order by key_id = 0 desc, "valueUinr" desc, "requests" desc, key_id desc) as place from used),
   unused as (
     select k.id from api_keys k
     where k.org_id = $1::int and k.revoked_at is null and not exists (select 1 from used u where u.key_id = k.id)
     order by k.id desc limit greatest(0, $6::int - (select count(*) from used)))
   select nullif(u.key_id, 0) as "keyId", k.name as "name", k.prefix as "prefix", k.revoked_at is not null as "revoked", 0 as "others",
     ${sumNames.map(name => `u.${name}`).join(', ')}
   from ranked u left join api_keys k on k.org_id = $1::int and k.id = u.key_id where u.place <= $6::int
   union all
   select null, null, null, null, count(*)::int, ${sumNames.map(name => `sum(u.${name})::bigint`).join(', ')}
   from ranked u where u.place > $6::int having count(*) > 0
   union all
   select k.id, k.name, k.prefix, false, 0, ${sumNames.map(() => '0').join(', ')}
   from unused join api_keys k on k.org_id = $1::int and k.id = unused.id
   order by "valueUinr" desc, "requests" desc, "keyId" desc nulls last`,
)
