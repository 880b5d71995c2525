import { statement } from '../../platform/db.ts'

/** Inserts events that are not there yet; how many, and their ids unless all were new, which is the rule. Columns come as one array each. */
export const insertEvents = statement<
  [
    days: readonly string[],
    ids: readonly string[],
    ats: readonly Date[],
    requestIds: readonly string[],
    orgIds: readonly number[],
    userIds: readonly (number | null)[],
    keyIds: readonly (number | null)[],
    workspaceIds: readonly (number | null)[],
    agentIds: readonly (number | null)[],
    agentLabels: readonly (string | null)[],
    kinds: readonly string[],
    models: readonly string[],
    providers: readonly string[],
    residencies: readonly string[],
    streamed: readonly boolean[],
    byok: readonly boolean[],
    statuses: readonly number[],
    outcomes: readonly string[],
    promptTokens: readonly bigint[],
    completionTokens: readonly bigint[],
    cachedTokens: readonly bigint[],
    reasoningTokens: readonly bigint[],
    estimated: readonly boolean[],
    values: readonly bigint[],
    costs: readonly bigint[],
    latencies: readonly number[],
    firstBytes: readonly (number | null)[],
    cacheWriteTokens: readonly bigint[],
    images: readonly number[],
    audioSeconds: readonly number[],
    characters: readonly bigint[],
  ],
  { count: bigint; ids: readonly string[] | null }
>(
  'usage.insert_events',
  `with inserted as (insert into usage_events (day, id, at, request_id, org_id, user_id, key_id, workspace_id, agent_id, agent_label, kind, model, provider, residency,
     streamed, byok, status, outcome, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, estimated, value_uinr, cost_uinr, latency_ms, first_byte_ms,
     cache_write_tokens, images, audio_seconds, characters)
   select * from unnest($1::date[], $2::uuid[], $3::timestamptz[], $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::text[], $11::text[],
     $12::text[], $13::text[], $14::text[], $15::boolean[], $16::boolean[], $17::int[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[],
     $23::boolean[], $24::bigint[], $25::bigint[], $26::int[], $27::int[], $28::bigint[], $29::int[], $30::int[], $31::bigint[])
   on conflict (day, id) do nothing
   returning id)
   select count(*) as "count", case when count(*) < cardinality($2::uuid[]) then array_agg(id::text) end as "ids" from inserted`,
)

export interface TotalsRow {
  readonly requests: bigint
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly valueUinr: bigint
  readonly costUinr: bigint
  /** Parts of the prompt. */
  readonly cachedTokens: bigint
  readonly cacheWriteTokens: bigint
}

const sums = `count(*) as "requests", sum(prompt_tokens)::bigint as "promptTokens", sum(completion_tokens)::bigint as "completionTokens",
     sum(value_uinr)::bigint as "valueUinr", sum(cost_uinr)::bigint as "costUinr",
     sum(cached_tokens)::bigint as "cachedTokens", sum(cache_write_tokens)::bigint as "cacheWriteTokens"`

export const sumByModel = statement<[orgId: number, from: string, to: string], TotalsRow & { model: string }>(
  'usage.sum_by_model',
  `select model as "model", ${sums}
   from usage_events where org_id = $1::int and day between $2::date and $3::date group by model order by sum(value_uinr) desc, model`,
)

export const sumByAgent = statement<[orgId: number, from: string, to: string], TotalsRow & { agentId: number | null; agentLabel: string | null }>(
  'usage.sum_by_agent',
  `select agent_id as "agentId", case when agent_id is null then agent_label end as "agentLabel", ${sums}
   from usage_events where org_id = $1::int and day between $2::date and $3::date
   group by agent_id, case when agent_id is null then agent_label end
   order by sum(value_uinr) desc, agent_id nulls last, 2 nulls last`,
)

export const sumByDay = statement<[orgId: number, from: string, to: string], TotalsRow & { day: string; model: string; provider: string }>(
  'usage.sum_by_day',
  `select day as "day", model as "model", provider as "provider", ${sums}
   from usage_events where org_id = $1::int and day between $2::date and $3::date group by day, model, provider order by day, model, provider`,
)

/** The statement that makes the partition of an IST month. The texts are built here from numbers only. */
export function partitionSql(year: number, month: number): string {
  const first = (y: number, m: number): string => `${y}-${String(m).padStart(2, '0')}-01`
  const next = month === 12 ? first(year + 1, 1) : first(year, month + 1)
  const name = `usage_events_${year}_${String(month).padStart(2, '0')}`
  return `create table if not exists ${name} partition of usage_events for values from ('${first(year, month)}') to ('${next}')`
}
