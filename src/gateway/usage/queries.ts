import { statement } from '../../platform/db/db.ts'

/**
 * Inserts the events that do not exist yet. Returns the number of new events. When some of the events existed already, it also returns the ids of the
 * new ones. That is rare. Each column is passed as one array.
 */
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
    tried: readonly (string | null)[],
    runIds: readonly (string | null)[],
    runAgentIds: readonly (number | null)[],
    tags: readonly (string | null)[],
    runParts: readonly (boolean | null)[],
    searches: readonly number[],
    saved: readonly (bigint | null)[],
  ],
  { count: bigint; ids: readonly string[] | null }
>(
  'usage.insert_events',
  `with inserted as (insert into usage_events (day, id, at, request_id, org_id, user_id, key_id, workspace_id, agent_id, agent_label, kind, model, provider, residency,
     streamed, byok, status, outcome, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, estimated, value_uinr, cost_uinr, latency_ms, first_byte_ms,
     cache_write_tokens, images, audio_seconds, characters, tried, run_id, run_agent_id,
     tags, run_part, searches, saved_uinr)
   select * from unnest($1::date[], $2::uuid[], $3::timestamptz[], $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::text[], $11::text[],
     $12::text[], $13::text[], $14::text[], $15::boolean[], $16::boolean[], $17::int[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[],
     $23::boolean[], $24::bigint[], $25::bigint[], $26::int[], $27::int[], $28::bigint[], $29::int[], $30::int[], $31::bigint[], $32::text[], $33::text[], $34::int[],
     $35::text[], $36::boolean[], $37::int[], $38::bigint[])
   on conflict (day, id) do nothing
   returning id)
   select count(*) as "count", case when count(*) < cardinality($2::uuid[]) then array_agg(id::text) end as "ids" from inserted`,
)

/**
 * Returns the statements that create the partition of an IST month. While they wait for their lock, every flush waits too, so they give up soon. An
 * existing partition needs no lock. The text contains only numbers, so it is safe to build it here.
 */
export function partitionSql(year: number, month: number): string {
  const first = (y: number, m: number): string => `${y}-${String(m).padStart(2, '0')}-01`
  const next = month === 12 ? first(year + 1, 1) : first(year, month + 1)
  const name = `usage_events_${year}_${String(month).padStart(2, '0')}`
  return `begin; set local lock_timeout = '2s';
    create table if not exists ${name} partition of usage_events for values from ('${first(year, month)}') to ('${next}'); commit;`
}
