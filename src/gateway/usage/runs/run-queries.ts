/** Statements that read runs. Each reads a bounded number of rows from an index. */
import { statement } from '../../../platform/db/db.ts'
import type { RunOwnerKind } from './run-sums.ts'

export interface RunRow {
  readonly number: bigint
  readonly ownerKind: RunOwnerKind
  readonly ownerId: number
  /** The name of the agent or key. Null when there is none. */
  readonly ownerName: string | null
  readonly runId: string
  /** Null: no call had tags. */
  readonly tags: Readonly<Record<string, string>> | null
  readonly firstAt: Date
  readonly lastAt: Date
  readonly lastDay: string
  readonly calls: bigint
  readonly errors: bigint
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly cachedTokens: bigint
  readonly valueUinr: bigint
  readonly costUinr: bigint
  /** When the run was ended, and by whom. Null when nobody ended it. */
  readonly endedAt: Date | null
  readonly endedByUser: number | null
  readonly endedByKey: number | null
  /** True when the agent of the run is revoked. */
  readonly isRevoked: boolean
  /** The caps that bind the run, as its last look-up found them. Null: none. */
  readonly costCapUinr: bigint | null
  readonly callsCap: bigint | null
  /** What a person has granted beside the caps until a time. Null: nothing. */
  readonly moreUinr: bigint | null
  readonly moreCalls: bigint | null
  readonly moreUntil: Date | null
  readonly minutesCap: number | null
  readonly subagentsCap: number | null
}

/** The sums of a part of a run. */
export type RunSums = Pick<RunRow, 'calls' | 'errors' | 'promptTokens' | 'completionTokens' | 'cachedTokens' | 'valueUinr' | 'costUinr'>

const sums = `calls as "calls", r.errors as "errors", r.prompt_tokens as "promptTokens", r.completion_tokens as "completionTokens",
     r.cached_tokens as "cachedTokens", r.value_uinr as "valueUinr", r.cost_uinr as "costUinr"`
const columns = `r.number as "number", r.owner_kind as "ownerKind", r.owner_id as "ownerId", coalesce(a.name, k.name) as "ownerName", r.run_id as "runId",
     r.tags as "tags",
     r.first_at as "firstAt", r.last_at as "lastAt", r.last_day as "lastDay", r.${sums},
     e.ended_at as "endedAt", e.ended_by_user as "endedByUser", e.ended_by_key as "endedByKey", coalesce(a.status = 'revoked', false) as "isRevoked",
     case when cs.extra_until > clock_timestamp() then cs.extra end as "moreUinr", case when cc.extra_until > clock_timestamp() then cc.extra end as "moreCalls",
     case when greatest(cs.extra_until, cc.extra_until) > clock_timestamp() then greatest(cs.extra_until, cc.extra_until) end as "moreUntil",
     cs.cap as "costCapUinr", cc.cap as "callsCap", coalesce(r.set_caps->>'max_minutes', coalesce(a.run_caps, k.run_caps)->>'max_minutes')::int as "minutesCap",
     coalesce(r.set_caps->>'max_subagents', coalesce(a.run_caps, k.run_caps)->>'max_subagents')::int as "subagentsCap"`
/** The counter of a run with caps, which counts what its row does. */
const counterOf = (name: string, metric: string): string =>
  `left join counters ${name} on r.capped and ${name}.org_id = r.org_id and ${name}.scope = 'org' and ${name}.scope_id = 'run/' || r.number
     and ${name}.metric = '${metric}' and ${name}.period = 'ever'`
const names = `left join agents a on r.owner_kind = 'agent' and a.org_id = r.org_id and a.id = r.owner_id
   left join api_keys k on r.owner_kind = 'key' and k.org_id = r.org_id and k.id = r.owner_id
   left join run_ends e on e.org_id = r.org_id and e.owner_kind = r.owner_kind and e.owner_id = r.owner_id and e.run_id = r.run_id
   ${counterOf('cs', 'run_spend')} ${counterOf('cc', 'run_calls')}`

/** Returns the runs before a place, with their last call on a day or later, the latest first. */
export const listRuns = statement<[orgId: number, from: string, beforeDay: string, beforeNumber: bigint, limit: number], RunRow>(
  'usage.list_runs',
  `select ${columns} from (
     select * from runs where org_id = $1::int and last_day >= $2::date and last_day <= $3::date and (last_day, number) < ($3::date, $4::bigint)
     order by last_day desc, number desc limit $5::int) r ${names}
   order by r.last_day desc, r.number desc`,
)

/** Returns the same of one owner. */
export const listRunsOfOwner = statement<
  [orgId: number, from: string, beforeDay: string, beforeNumber: bigint, limit: number, ownerKind: RunOwnerKind, ownerId: number],
  RunRow
>(
  'usage.list_runs_of_owner',
  `select ${columns} from (
     select * from runs where org_id = $1::int and owner_kind = $6::text and owner_id = $7::int
       and last_day >= $2::date and last_day <= $3::date and (last_day, number) < ($3::date, $4::bigint)
     order by last_day desc, number desc limit $5::int) r ${names}
   order by r.last_day desc, r.number desc`,
)

/** Returns the same of the runs with a tag, of one owner when one is given. `tag` is a JSON object. */
export const listRunsOfTag = statement<
  [orgId: number, from: string, beforeDay: string, beforeNumber: bigint, limit: number, ownerKind: RunOwnerKind | null, ownerId: number | null, tag: string],
  RunRow
>(
  'usage.list_runs_of_tag',
  `select ${columns} from (
     select * from runs where org_id = $1::int and tags @> $8::jsonb and ($6::text is null or (owner_kind = $6::text and owner_id = $7::int))
       and last_day >= $2::date and last_day <= $3::date and (last_day, number) < ($3::date, $4::bigint)
     order by last_day desc, number desc limit $5::int) r ${names}
   order by r.last_day desc, r.number desc`,
)

/** Returns the runs with this id, the latest first. Each owner has at most one. */
export const findRuns = statement<[orgId: number, runId: string, limit: number], RunRow>(
  'usage.find_runs',
  `select ${columns} from runs r ${names} where r.org_id = $1::int and r.run_id = $2::text order by r.last_at desc, r.number desc limit $3::int`,
)

/** Returns the run of one owner with this id. */
export const findRunOfOwner = statement<[orgId: number, ownerKind: RunOwnerKind, ownerId: number, runId: string], RunRow>(
  'usage.find_run_of_owner',
  `select ${columns} from runs r ${names}
   where r.org_id = $1::int and r.owner_kind = $2::text and r.owner_id = $3::int and r.run_id = $4::text`,
)

const summed = `sum(p.calls)::bigint as "calls", sum(p.errors)::bigint as "errors", sum(p.prompt_tokens)::bigint as "promptTokens",
     sum(p.completion_tokens)::bigint as "completionTokens", sum(p.cached_tokens)::bigint as "cachedTokens", sum(p.value_uinr)::bigint as "valueUinr",
     sum(p.cost_uinr)::bigint as "costUinr"`

/** Returns the sums of a run by model, the dearest first. */
export const sumsByModel = statement<[number: bigint, limit: number], RunSums & { readonly model: string }>(
  'usage.run_sums_by_model',
  `select p.model as "model", ${summed} from run_parts p where p.run_number = $1::bigint
   group by p.model order by sum(p.value_uinr) desc, p.model limit $2::int`,
)

/** Returns the sums of a run by agent, the dearest first. Agent 0 means calls without a registered agent. */
export const sumsByAgent = statement<[orgId: number, number: bigint, limit: number], RunSums & { readonly agentId: number; readonly agentName: string | null }>(
  'usage.run_sums_by_agent',
  `select p.agent_id as "agentId", a.name as "agentName", ${summed} from run_parts p left join agents a on a.org_id = $1::int and a.id = p.agent_id
   where p.run_number = $2::bigint group by p.agent_id, a.name order by sum(p.value_uinr) desc, p.agent_id limit $3::int`,
)

/** Returns the sums of a run by sub-agent, the dearest first. */
export const sumsBySubagent = statement<[number: bigint, limit: number], RunSums & { readonly name: string }>(
  'usage.run_sums_by_subagent',
  `select r.name as "name", r.${sums} from run_subagent_sums r where r.run_number = $1::bigint order by r.value_uinr desc, r.name limit $2::int`,
)

/** What the runs of an organisation with one value of a tag used. */
export interface TagRow extends RunSums {
  readonly value: string
  readonly runs: bigint
}

/**
 * Returns the sums of the runs whose last call was in a span, by the value of a tag, the dearest first. Values beyond `valuesMax` are added up as `(others)`.
 * It reads at most `runsMax` runs.
 */
export const sumsByTag = statement<[orgId: number, from: string, to: string, key: string, valuesMax: number, runsMax: number], TagRow>(
  'usage.run_sums_by_tag',
  `with p as materialized (select * from runs where org_id = $1::int and last_day between $2::date and $3::date limit $6::int),
   tagged as (select coalesce(p.tags ->> $4::text, '(none)') as value, count(*) as runs, ${summed} from p group by 1),
   placed as (select t.*, row_number() over (order by t."valueUinr" desc, t.value) as place from tagged t)
   select case when p.place <= $5::int then p.value else '(others)' end as "value", sum(p.runs)::bigint as "runs", sum(p.calls)::bigint as "calls",
     sum(p.errors)::bigint as "errors", sum(p."promptTokens")::bigint as "promptTokens", sum(p."completionTokens")::bigint as "completionTokens",
     sum(p."cachedTokens")::bigint as "cachedTokens", sum(p."valueUinr")::bigint as "valueUinr", sum(p."costUinr")::bigint as "costUinr"
   from placed p group by 1 order by "valueUinr" desc, "value"`,
)

/** Returns the agent at the top of a family. */
export const findFamilyTop = statement<[orgId: number, agentId: number], { id: number }>(
  'usage.find_family_top',
  `with recursive above as (
     select id, parent_id from agents where org_id = $1::int and id = $2::int
     union all select a.id, a.parent_id from agents a join above b on a.id = b.parent_id where a.org_id = $1::int)
   select id as "id" from above where parent_id is null`,
)

/** Deletes runs whose last call was before a day, at most `limit`, with their parts. */
export const deleteOldRuns = statement<[before: string, limit: number]>(
  'usage.delete_old_runs',
  `delete from runs where number = any(array(select number from runs where last_day < $1::date and not capped order by last_day limit $2::int))`,
)

/** Deletes the counts of days before a day, at most `limit`. */
export const deleteOldRunDays = statement<[before: string, limit: number]>(
  'usage.delete_old_run_days',
  `delete from run_days where ctid = any(array(select ctid from run_days where day < $1::date order by day limit $2::int))`,
)
