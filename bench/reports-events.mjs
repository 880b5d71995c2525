/** Makes the usage events of `bench:reports` with SQL. They are spread evenly over 90 days, and each key uses three of the models. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../scripts/paths.mjs'

export const spanDays = 90
const keyCount = 1000
const agentCount = 20
/** Each key belongs to one of these people and to one of these workspaces. */
const personCount = 50
const workspaceCount = 10
/** Number of other organisations. A tenth of the events belongs to them. */
const otherOrgs = 50
const firstOtherOrg = 1_000_000
const batchEvents = 500_000
const dayMs = 24 * 3600_000

export const models = Array.from({ length: 12 }, (_, i) => `bench-${i}`)
export const providers = [
  { id: 'bench-india', residency: 'india' },
  { id: 'bench-global', residency: 'global' },
]

/** Makes the keys, agents and partitions that the events name. Returns the ids of the first key and agent. */
export async function fillNames(client, orgId) {
  const { partitionSql } = await import(pathToFileURL(join(root, 'dist', 'gateway', 'usage', 'queries.js')))
  // Makes one partition for each month, as processes that ran for 90 days would have done.
  for (let atMs = Date.now() - (spanDays + 1) * dayMs; atMs < Date.now() + dayMs; atMs += dayMs) {
    const at = new Date(atMs)
    await client.query(partitionSql(at.getUTCFullYear(), at.getUTCMonth() + 1))
  }
  const keys = await client.query(
    `insert into api_keys (org_id, name, hash, prefix, created_at)
     select $1::int, 'key ' || i, sha256(('bench' || i)::bytea), 'br-bench', now() from generate_series(1, $2::int) i returning id`,
    [orgId, keyCount],
  )
  const agents = await client.query(
    `insert into agents (org_id, name, created_at) select $1::int, 'agent ' || i, now() from generate_series(1, $2::int) i returning id`,
    [orgId, agentCount],
  )
  return { firstKey: Math.min(...keys.rows.map(({ id }) => id)), firstAgent: Math.min(...agents.rows.map(({ id }) => id)) }
}

/** `r(n)` is a pseudo-random number that depends only on the number of the event, so that every run makes the same events. */
const insertEvents = `
  insert into usage_events (day, id, at, request_id, org_id, user_id, workspace_id, key_id, agent_id, agent_label, kind, model, provider, residency, streamed, byok, status,
    outcome, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, estimated, value_uinr, cost_uinr, latency_ms, first_byte_ms)
  select (at at time zone 'Asia/Kolkata')::date,
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid,
    at, 'req_' || substr(md5('r' || i), 1, 24), case when i % 11 = 0 then $5::int + r1 % $6::int else $4::int end, 1 + key % $12::int, 1 + key % $13::int,
    case when i % 11 = 0 then 900000 + r1 % 500 else $7::int + key end,
    case when i % 11 <> 0 and r2 % 10 = 0 then $8::int + key % $9::int end, case when r2 % 40 = 1 then 'label-' || r2 % 5 end, 'chat',
    'bench-' || (key + r3 % 3) % 12, case when r3 % 4 = 0 then 'bench-global' else 'bench-india' end, case when r3 % 4 = 0 then 'global' else 'india' end,
    r4 % 2 = 0, r4 % 20 = 0, case when r4 % 50 = 0 then 502 else 200 end, case when r4 % 50 = 0 then 'failed' when r4 % 50 = 1 then 'client_gone' else 'ok' end,
    200 + r1 % 3000, 50 + r2 % 900, r3 % 100, 0, false, 1000 + r4 % 90000, case when r4 % 20 = 0 then 0 else 1000 + r4 % 90000 end, 300 + r2 % 9000, 100 + r3 % 500
  from (
    select i, to_timestamp($1::float8 - (i % $10::bigint + 0.5) / $10::float8 * $11::float8) as at, (hashint8extended(i, 5) & 1073741823) % 1000 as key,
      hashint8extended(i, 1) & 1073741823 as r1, hashint8extended(i, 2) & 1073741823 as r2, hashint8extended(i, 3) & 1073741823 as r3,
      hashint8extended(i, 4) & 1073741823 as r4
    from generate_series($2::bigint, $3::bigint) i) n`

/** Makes `size` events of the organisation, and a tenth as many in other organisations. */
export async function fillEvents(client, { orgId, firstKey, firstAgent, nowMs }, size, say) {
  const total = Math.round(size * 1.1)
  for (let at = 0; at < total; at += batchEvents) {
    const end = Math.min(at + batchEvents, total)
    await client.query(insertEvents, [
      ...[nowMs / 1000, at + 1, end, orgId, firstOtherOrg, otherOrgs, firstKey, firstAgent, agentCount, total, spanDays * 86_400],
      ...[personCount, workspaceCount],
    ])
    if (total > batchEvents) say(`  ${end.toLocaleString('en')} of ${total.toLocaleString('en')}`)
  }
}

/** Returns the numbers of rows and bytes of the usage tables. */
export async function sizesOf(client) {
  const { rows } = await client.query(
    `select case when c.relname like 'usage_events%' then 'usage_events' else c.relname end as name, sum(greatest(c.reltuples, 0))::bigint as rows,
       sum(pg_table_size(c.oid))::bigint as table_bytes, sum(pg_indexes_size(c.oid))::bigint as index_bytes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind = 'r' and c.relname ~ '^(usage_|model_days|model_latencies)' group by 1 order by 3 desc`,
  )
  return rows.map(row => ({ name: row.name, rows: Number(row.rows), tableBytes: Number(row.table_bytes), indexBytes: Number(row.index_bytes) }))
}
