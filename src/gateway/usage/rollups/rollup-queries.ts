/**
 * Statements that add to the sums. Each statement takes its rows as one JSON array, sorted by primary key. All flushes therefore lock rows in the
 * same order.
 */
import { statement } from '../../../platform/db/db.ts'

/** Columns that every table of an organisation sums. */
const sums = ['requests', 'errors', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'cache_write_tokens', 'value_uinr', 'cost_uinr']
const modelSums = ['requests', 'tokens', 'succeeded', 'failed', 'written_tokens', 'written_ms']

const types = (names: readonly string[]): string => names.map(name => `${name} bigint`).join(', ')
const added = (names: readonly string[]): string => names.map(name => `${name} = sums.${name} + excluded.${name}`).join(', ')

/**
 * The first statement of a flush. It waits while the sums of a day are computed again (`rollup-rebuild.ts`). Such a rebuild waits until the flush has
 * committed.
 */
export const addToDays = statement<[rows: string]>(
  'usage.add_to_days',
  `insert into usage_days as sums (org_id, day, model, provider, residency, byok, ${sums.join(', ')})
   select r.* from (select pg_advisory_xact_lock_shared(3, 20)) as gate,
     jsonb_to_recordset($1::jsonb) as r (org_id int, day date, model text, provider text, residency text, byok boolean, ${types(sums)})
   on conflict (org_id, day, model, provider, residency, byok) do update set ${added(sums)}`,
)

export const addToKeyDays = statement<[rows: string]>(
  'usage.add_to_key_days',
  `insert into usage_days_by_key as sums (org_id, day, key_id, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, key_id int, ${types(sums)})
   on conflict (org_id, day, key_id) do update set ${added(sums)}`,
)

export const addToKeyModelDays = statement<[rows: string]>(
  'usage.add_to_key_model_days',
  `insert into usage_days_by_key_model as sums (org_id, key_id, day, model, provider, byok, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, key_id int, day date, model text, provider text, byok boolean, ${types(sums)})
   on conflict (org_id, key_id, day, model, provider, byok) do update set ${added(sums)}`,
)

/** Adds to the sums by week. Model '' means all models together. */
export const addToKeyWeeks = statement<[rows: string]>(
  'usage.add_to_key_weeks',
  `insert into usage_weeks_by_key as sums (org_id, model, week, key_id, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, model text, week date, key_id int, ${types(sums)})
   on conflict (org_id, model, week, key_id) do update set ${added(sums)}`,
)

export const addToAgentDays = statement<[rows: string]>(
  'usage.add_to_agent_days',
  `insert into usage_days_by_agent as sums (org_id, day, agent_id, agent_label, residency, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, agent_id int, agent_label text, residency text, ${types(sums)})
   on conflict (org_id, day, agent_id, agent_label, residency) do update set ${added(sums)}`,
)

const callerColumns = 'user_id, workspace_id, agent_id, model, provider, byok'
const callerTypes = 'user_id int, workspace_id int, agent_id int, model text, provider text, byok boolean'

export const addToCallerDays = statement<[rows: string]>(
  'usage.add_to_caller_days',
  `insert into usage_days_by_caller as sums (org_id, day, ${callerColumns}, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, ${callerTypes}, ${types(sums)})
   on conflict (org_id, model, day, user_id, workspace_id, agent_id, provider, byok) do update set ${added(sums)}`,
)

export const addToMemberDays = statement<[rows: string]>(
  'usage.add_to_member_days',
  `insert into usage_days_by_member as sums (org_id, day, user_id, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, user_id int, ${types(sums)})
   on conflict (org_id, day, user_id) do update set ${added(sums)}`,
)

export const addToCallerHours = statement<[rows: string]>(
  'usage.add_to_caller_hours',
  `insert into usage_hours_by_caller as sums (org_id, day, hour, ${callerColumns}, ${sums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, hour smallint, ${callerTypes}, ${types(sums)})
   on conflict (org_id, day, hour, ${callerColumns}) do update set ${added(sums)}`,
)

/** Model '' means all models together, and provider '' all providers. */
export const addToDayLatencies = statement<[rows: string]>(
  'usage.add_to_day_latencies',
  `insert into usage_day_latencies as sums (org_id, day, model, provider, bucket, requests)
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, model text, provider text, bucket smallint, requests bigint)
   on conflict (org_id, model, provider, day, bucket) do update set ${added(['requests'])}`,
)

export const addToHourLatencies = statement<[rows: string]>(
  'usage.add_to_hour_latencies',
  `insert into usage_hour_latencies as sums (org_id, day, hour, model, provider, bucket, requests)
   select * from jsonb_to_recordset($1::jsonb) as r (org_id int, day date, hour smallint, model text, provider text, bucket smallint, requests bigint)
   on conflict (org_id, model, provider, day, hour, bucket) do update set ${added(['requests'])}`,
)

export const addToModelDays = statement<[rows: string]>(
  'usage.add_to_model_days',
  `insert into model_days as sums (day, model, shard, ${modelSums.join(', ')})
   select * from jsonb_to_recordset($1::jsonb) as r (day date, model text, shard smallint, ${types(modelSums)})
   on conflict (day, model, shard) do update set ${added(modelSums)}`,
)

export const addToModelLatencies = statement<[rows: string]>(
  'usage.add_to_model_latencies',
  `insert into model_latencies as sums (day, model, bucket, shard, requests)
   select * from jsonb_to_recordset($1::jsonb) as r (day date, model text, bucket smallint, shard smallint, requests bigint)
   on conflict (day, model, bucket, shard) do update set ${added(['requests'])}`,
)
