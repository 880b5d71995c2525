/** Statements that add the calls of runs up, inside the transaction of a flush. Each takes its rows as one JSON array. */
import { statement } from '../../../platform/db/db.ts'
import { tagsMax } from '../../wire/runs/run-tags.ts'

const sums = ['calls', 'errors', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'value_uinr', 'cost_uinr']
const sumNames = sums.join(', ')
const sumTypes = sums.map(name => `${name} bigint`).join(', ')
const added = sums.map(name => `${name} = runs.${name} + excluded.${name}`).join(', ')

/** SQL for the tags of a run after calls. Of each key, the first value stays. Calls that would bring too many add none. */
const tagsWith = (added: string): string => `case when ${added}.tags is null or runs.tags @> ${added}.tags then runs.tags
     when (select count(*) from jsonb_object_keys(${added}.tags || coalesce(runs.tags, '{}'::jsonb))) > ${tagsMax} then runs.tags
     else ${added}.tags || coalesce(runs.tags, '{}'::jsonb) end`

/** The identity of a run in these statements. */
export interface RunKeyRow {
  readonly number: bigint
  readonly orgId: number
  readonly ownerKind: string
  readonly ownerId: number
  readonly runId: string
  /** True when the run has counters. */
  readonly capped: boolean
}

const keyColumns = `number as "number", org_id as "orgId", owner_kind as "ownerKind", owner_id as "ownerId", run_id as "runId", capped as "capped"`

/**
 * Locks the counts of the days until the end of the transaction, and returns how many runs have begun on each. Flushes of one organisation therefore
 * take the rows of runs one after the other.
 */
export const holdRunDays = statement<[orgIds: readonly number[], days: readonly string[]], { orgId: number; day: string; runs: number }>(
  'usage.hold_run_days',
  `insert into run_days as d (org_id, day, runs) select a.org_id, a.day, 0 from unnest($1::int[], $2::date[]) as a(org_id, day) order by 1, 2
   on conflict (org_id, day) do update set runs = d.runs returning org_id as "orgId", day as "day", runs as "runs"`,
)

export const countRunDays = statement<[orgIds: readonly number[], days: readonly string[], runs: readonly number[]]>(
  'usage.count_run_days',
  `update run_days d set runs = d.runs + a.runs from unnest($1::int[], $2::date[], $3::int[]) as a(org_id, day, runs)
   where d.org_id = a.org_id and d.day = a.day`,
)

/** Adds to the runs that have a row, and returns them. */
export const addToRuns = statement<[rows: string], RunKeyRow>(
  'usage.add_to_runs',
  `update runs set ${sums.map(name => `${name} = runs.${name} + a.${name}`).join(', ')}, first_at = least(runs.first_at, a.first_at),
     last_at = greatest(runs.last_at, a.last_at), last_day = greatest(runs.last_day, a.last_day), tags = ${tagsWith('a')}
   from jsonb_to_recordset($1::jsonb) as a (org_id int, owner_kind text, owner_id int, run_id text, first_at timestamptz, last_at timestamptz,
     last_day date, tags jsonb, ${sumTypes})
   where runs.org_id = a.org_id and runs.owner_kind = a.owner_kind and runs.owner_id = a.owner_id and runs.run_id = a.run_id
   returning runs.number as "number", runs.org_id as "orgId", runs.owner_kind as "ownerKind", runs.owner_id as "ownerId", runs.run_id as "runId",
     runs.capped as "capped"`,
)

/** Makes the rows of new runs, and returns them. */
export const insertRuns = statement<[rows: string], RunKeyRow>(
  'usage.insert_runs',
  `insert into runs (org_id, owner_kind, owner_id, run_id, first_at, last_at, last_day, tags, ${sumNames})
   select a.* from jsonb_to_recordset($1::jsonb) as a (org_id int, owner_kind text, owner_id int, run_id text, first_at timestamptz, last_at timestamptz,
     last_day date, tags jsonb, ${sumTypes})
   on conflict (org_id, owner_kind, owner_id, run_id) do update set ${added}, first_at = least(runs.first_at, excluded.first_at),
     last_at = greatest(runs.last_at, excluded.last_at), last_day = greatest(runs.last_day, excluded.last_day), tags = ${tagsWith('excluded')}
   returning ${keyColumns}`,
)

/**
 * Adds to the parts of runs. A run has at most `partsMax` parts with the name of a model. A further pair of agent and model is added to the part
 * `(others)` of the agent.
 */
export const addToRunParts = statement<[rows: string, partsMax: number]>(
  'usage.add_to_run_parts',
  `with asked as materialized (
     select * from jsonb_to_recordset($1::jsonb) as a (run_number bigint, agent_id int, model text, ${sumTypes})),
   known as (
     select a.*, p.run_number is not null as is_known, (select count(*) from run_parts c where c.run_number = a.run_number) as parts
     from asked a left join run_parts p on p.run_number = a.run_number and p.agent_id = a.agent_id and p.model = a.model),
   named as (
     select k.*, case when k.is_known or k.parts + row_number() over (partition by k.run_number, k.is_known order by k.agent_id, k.model) <= $2::int
       then k.model else '(others)' end as name
     from known k)
   insert into run_parts as runs (run_number, agent_id, model, ${sumNames})
   select n.run_number, n.agent_id, n.name, ${sums.map(name => `sum(n.${name})::bigint`).join(', ')} from named n group by 1, 2, 3 order by 1, 2, 3
   on conflict (run_number, agent_id, model) do update set ${added}`,
)

/** Adds to the sub-agents of runs. A run has at most `subagentsMax` of them, and further ones are added to `(others)`. */
export const addToRunSubagents = statement<[rows: string, subagentsMax: number]>(
  'usage.add_to_run_subagents',
  `with asked as materialized (
     select * from jsonb_to_recordset($1::jsonb) as a (run_number bigint, name text, ${sumTypes})),
   known as (
     select a.*, s.run_number is not null as is_known, (select count(*) from run_subagent_sums c where c.run_number = a.run_number) as many
     from asked a left join run_subagent_sums s on s.run_number = a.run_number and s.name = a.name),
   named as (
     select k.*, case when k.is_known or k.many + row_number() over (partition by k.run_number, k.is_known order by k.name) <= $2::int
       then k.name else '(others)' end as shown
     from known k)
   insert into run_subagent_sums as runs (run_number, name, ${sumNames})
   select n.run_number, n.shown, ${sums.map(name => `sum(n.${name})::bigint`).join(', ')} from named n group by 1, 2 order by 1, 2
   on conflict (run_number, name) do update set ${added}`,
)
