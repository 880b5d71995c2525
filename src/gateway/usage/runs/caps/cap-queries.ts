/** Statements about the caps of runs. */
import { statement } from '../../../../platform/db/db.ts'
import type { StoredRunCaps } from '../../../../platform/security/run-caps.ts'

/** What a run was given and asked, and what it has used. */
export interface CapsRow {
  readonly number: bigint
  readonly firstAt: Date
  readonly capped: boolean
  readonly valueUinr: bigint
  readonly calls: bigint
  readonly askedCostUinr: bigint | null
  readonly askedCalls: bigint | null
  readonly setCaps: StoredRunCaps | null
}

/** The same with the counters of the run. They are null when it has none. */
export interface CountedRow extends CapsRow {
  readonly spendId: bigint | null
  readonly spendCap: bigint | null
  readonly spendSpent: bigint | null
  readonly callsId: bigint | null
  readonly callsCap: bigint | null
  readonly callsSpent: bigint | null
  readonly strict: boolean | null
}

const columns = `r.number as "number", r.first_at as "firstAt", r.capped as "capped", r.value_uinr as "valueUinr", r.calls as "calls",
     r.asked_cost_uinr as "askedCostUinr", r.asked_calls as "askedCalls", r.set_caps as "setCaps"`
const ofRun = 'r.org_id = $1::int and r.owner_kind = $2::text and r.owner_id = $3::int and r.run_id = $4::text'
type RunKey = [orgId: number, ownerKind: string, ownerId: number, runId: string]

export const findCappedRun = statement<RunKey, CountedRow>(
  'usage.find_capped_run',
  `select ${columns}, s.id as "spendId", s.cap as "spendCap", s.spent as "spendSpent", s.strict as "strict", c.id as "callsId", c.cap as "callsCap",
     c.spent as "callsSpent"
   from runs r
   left join counters s on s.org_id = r.org_id and s.scope = 'org' and s.scope_id = 'run/' || r.number and s.metric = 'run_spend' and s.period = 'ever'
   left join counters c on c.org_id = r.org_id and c.scope = 'org' and c.scope_id = 'run/' || r.number and c.metric = 'run_calls' and c.period = 'ever'
   where ${ofRun}`,
)

/** Locks the row of a run. A flush that adds to the run waits, and adds to its counters what came later. */
export const lockRun = statement<RunKey, CapsRow>('usage.lock_run', `select ${columns} from runs r where ${ofRun} for no key update`)

/** Makes the row of a run that has not been called yet. Returns nothing when it is there. */
export const insertCappedRun = statement<[...RunKey, at: Date, day: string], CapsRow>(
  'usage.insert_capped_run',
  `insert into runs as r (org_id, owner_kind, owner_id, run_id, first_at, last_at, last_day, calls, errors, prompt_tokens, completion_tokens, cached_tokens,
     value_uinr, cost_uinr)
   values ($1::int, $2::text, $3::int, $4::text, $5::timestamptz, $5::timestamptz, $6::date, 0, 0, 0, 0, 0, 0, 0)
   on conflict (org_id, owner_kind, owner_id, run_id) do nothing
   returning ${columns}`,
)

/** Notes the caps of a run, and that it has counters. */
export const setRunCaps = statement<[number: bigint, askedCostUinr: bigint | null, askedCalls: bigint | null, setCaps: string | null]>(
  'usage.set_run_caps',
  `update runs set capped = true, asked_cost_uinr = $2::bigint, asked_calls = $3::bigint, set_caps = $4::jsonb where number = $1::bigint`,
)

/** Returns the caps that the owner of a run has for each of its runs. */
export const findOwnerCaps = statement<[orgId: number, ownerKind: string, ownerId: number], { caps: StoredRunCaps | null }>(
  'usage.find_owner_caps',
  `select run_caps as "caps" from agents where org_id = $1::int and $2::text = 'agent' and id = $3::int
   union all select run_caps as "caps" from api_keys where org_id = $1::int and $2::text = 'key' and id = $3::int`,
)

/** Returns the runs with caps of their own. The newest of each organisation come first, so that no organisation displaces the others. */
export const findRunsWithCaps = statement<[limit: number], { orgId: number; ownerKind: string; ownerId: number; runId: string }>(
  'usage.find_runs_with_caps',
  `select org_id as "orgId", owner_kind as "ownerKind", owner_id as "ownerId", run_id as "runId" from (
     select org_id, owner_kind, owner_id, run_id, number, row_number() over (partition by org_id order by number desc) as place from runs
     where asked_cost_uinr is not null or asked_calls is not null or set_caps is not null) r
   order by place, number desc limit $1::int`,
)

/** Returns runs with counters whose last call was before a day. A run with an increase keeps its counters until the increase ends. */
export const findRestingRuns = statement<[before: string, limit: number], { number: bigint; orgId: number }>(
  'usage.find_resting_runs',
  `select number as "number", org_id as "orgId" from runs r where capped and last_day < $1::date
     and not exists (select 1 from counters c where c.org_id = r.org_id and c.scope = 'org' and c.scope_id = 'run/' || r.number and c.metric in ('run_spend', 'run_calls')
       and c.period = 'ever' and c.extra_until > clock_timestamp())
   order by last_day limit $2::int`,
)

/** Locks the rows of runs that still rest. */
export const lockRestingRuns = statement<[numbers: readonly bigint[], before: string], { number: bigint; orgId: number }>(
  'usage.lock_resting_runs',
  `select number as "number", org_id as "orgId" from runs where number = any($1::bigint[]) and last_day < $2::date order by number for no key update`,
)

/** Notes that runs have no counters any more. */
export const unsetCapped = statement<[numbers: readonly bigint[]]>('usage.unset_capped', 'update runs set capped = false where number = any($1::bigint[])')

// ---- sub-agents

/** Locks a run while a sub-agent is added to it. */
export const lockRunNumber = statement<[number: bigint], { number: bigint }>(
  'usage.lock_run_number',
  'select number as "number" from runs where number = $1::bigint for no key update',
)

/** Returns the depth of a sub-agent and of the one above it, and how many the run has. */
export const findSubagent = statement<[number: bigint, name: string, above: string | null], { depth: number | null; aboveDepth: number | null; count: number }>(
  'usage.find_subagent',
  `select (select depth from run_subagents where run_number = $1::bigint and name = $2::text) as "depth",
     (select depth from run_subagents where run_number = $1::bigint and name = $3::text) as "aboveDepth",
     (select count(*)::int from run_subagents where run_number = $1::bigint) as "count"`,
)

export const insertSubagent = statement<[number: bigint, name: string, depth: number]>(
  'usage.insert_subagent',
  'insert into run_subagents (run_number, name, depth) values ($1::bigint, $2::text, $3::int) on conflict do nothing',
)
