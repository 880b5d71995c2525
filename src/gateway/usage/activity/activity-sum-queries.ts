/**
 * Statements for the sums of an activity report and for its CSV. There is one statement for each source (`activity-filters.ts`), because a statement that serves
 * several sources would have a plan for none of them.
 *
 * One statement reads one state of the database, so all parts of a report have the same sum even while flushes run.
 */
import { type Queryable, type Statement, statement } from '../../../platform/db/db.ts'
import { otherModels } from '../events/bounded-names.ts'
import { failedSql, hourSql } from '../events/event-sql.ts'
import type { DaySpan } from '../reports/usage-span.ts'
import { sumColumns, type TotalsRow } from '../reports/usage-totals.ts'
import { type ActivityFilters, type ActivityGroup, eventsMax, eventsSlack, sourceOf } from './activity-filters.ts'

/** Length of the lists of agents and members. The others share one row. */
export const callersMax = 20

/**
 * A row of a report. Part `model`: sums by day and model, by hour and model, by model and provider, or by model. Null in a name means that the row sums over all
 * values of that name. Parts `agent` and `member`: sums of one of them, of calls without one (`id` null), or of all others (`others` says how many).
 */
export type ActivityRow = TotalsRow & {
  readonly part: 'model' | 'agent' | 'member'
  readonly day: string | null
  readonly hour: number | null
  readonly model: string
  readonly provider: string | null
  readonly byokRequests: bigint
  readonly id: number | null
  readonly others: bigint
  readonly name: string | null
  readonly email: string | null
}

/** A line of the CSV. `hour` is null in lines by day. */
export type ActivityLine = TotalsRow & { readonly day: string; readonly hour: number | null; readonly model: string; readonly provider: string }

const rawSums = ['requests', 'errors', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'cache_write_tokens', 'value_uinr', 'cost_uinr']

const addedSums = rawSums.map(sum => `sum(${sum}) as ${sum}`).join(', ')

/** The SQL of one source. */
interface Shape {
  /** Rows with the columns of a table of sums. */
  readonly rows: string
  readonly hasHours: boolean
  /**
   * Rows of sums by `agent_id` and by `user_id`: from a table of each, or from rows that have both, which are first added up by caller. Null when the source does
   * not know them.
   */
  readonly callers: { readonly agents: string; readonly members: string } | { readonly both: string } | null
}

const ofSpan = 'org_id = $1::int and day between $2::date and $3::date'
const ofModel = '($5::text is null or model = $5::text) and ($6::text is null or provider = $6::text)'
const same = (column: string, parameter: string): string => `${column} = ${parameter}::int and ${column} <> 0`
const sameIfGiven = (column: string, parameter: string): string => `(${parameter}::int is null or ${column} = ${parameter}::int)`
const [isAgent, isMember, isWorkspace] = [same('agent_id', '$7'), same('user_id', '$8'), same('workspace_id', '$9')]
const [maybeAgent, maybeMember, maybeWorkspace] = [sameIfGiven('agent_id', '$7'), sameIfGiven('user_id', '$8'), sameIfGiven('workspace_id', '$9')]

const inRows = { both: 'found' }
const summed = (table: string, where: string, columns = ''): string =>
  `select day, model, provider, byok, ${columns}${rawSums.join(', ')} from ${table} where ${ofSpan} and ${ofModel} and ${where}`
const callerDays = (where: string): Shape => ({
  rows: summed('usage_days_by_caller', where, 'agent_id, user_id, '),
  hasHours: false,
  callers: inRows,
})

/**
 * SQL of the single calls that a report reads: at most `$11` of the newest of a span, and of these the ones that match. Its parameters are those of a caller, then
 * the key.
 */
export const eventRows = `select day, id, at, kind, model, provider, byok, coalesce(agent_id, 0) as agent_id, coalesce(user_id, 0) as user_id,
       coalesce(key_id, 0) as key_id, ${hourSql} as hour, outcome, status, latency_ms, 1::bigint as requests, (${failedSql})::int::bigint as errors,
       prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr
     from (select * from usage_events where ${ofSpan} order by day desc, id desc limit $11::int) e
     where ${ofModel} and ${maybeAgent} and ${maybeMember} and ${maybeWorkspace} and ($10::int is null or coalesce(key_id, 0) = $10::int)`

const days = { rows: summed('usage_days', 'true'), hasHours: false } as const
const ofFiltered = `(select * from usage_days_by_caller where ${ofSpan} and ${ofModel}) as filtered`
const ofAll = (table: string): string => `(select * from ${table} where ${ofSpan}) as used_by`

const shapes = {
  org: { ...days, callers: { agents: ofAll('usage_days_by_agent'), members: ofAll('usage_days_by_member') } },
  /** With a filter by model or provider, only the sums by caller know agents and members. */
  org_filtered: { ...days, callers: { both: ofFiltered } },
  key: { rows: summed('usage_days_by_key_model', 'key_id = $7::int'), hasHours: false, callers: null },
  agent: callerDays(`${isAgent} and ${maybeMember} and ${maybeWorkspace}`),
  member: callerDays(`${maybeAgent} and ${isMember} and ${maybeWorkspace}`),
  workspace: callerDays(`${maybeAgent} and ${maybeMember} and ${isWorkspace}`),
  hours: {
    rows: summed('usage_hours_by_caller', `${maybeAgent} and ${maybeMember} and ${maybeWorkspace}`, 'agent_id, user_id, hour, '),
    hasHours: true,
    callers: inRows,
  },
  events: { rows: eventRows, hasHours: false, callers: inRows },
  events_by_hour: { rows: eventRows, hasHours: true, callers: inRows },
} as const satisfies Readonly<Record<string, Shape>>

type Span = [orgId: number, from: string, to: string, max: number, model: string | null, provider: string | null]
type Callers = [...Span, agentId: number | null, userId: number | null, workspaceId: number | null]
/** The parameters of a statement that reads single calls. */
export type EventParams = [...Callers, keyId: number | null, readMax: number]

/** The same question to each source. */
interface Asked<R> {
  readonly org: Statement<Span, R>
  readonly orgFiltered: Statement<Span, R>
  readonly key: Statement<[...Span, keyId: number], R>
  readonly agent: Statement<Callers, R>
  readonly member: Statement<Callers, R>
  readonly workspace: Statement<Callers, R>
  readonly hours: Statement<Callers, R>
  readonly events: Statement<EventParams, R>
  readonly eventsByHour: Statement<EventParams, R>
}

function asked<R>(name: string, sqlOf: (shape: Shape) => string): Asked<R> {
  return {
    org: statement(`usage.${name}`, sqlOf(shapes.org)),
    orgFiltered: statement(`usage.${name}_filtered`, sqlOf(shapes.org_filtered)),
    key: statement(`usage.${name}_of_key`, sqlOf(shapes.key)),
    agent: statement(`usage.${name}_of_agent`, sqlOf(shapes.agent)),
    member: statement(`usage.${name}_of_member`, sqlOf(shapes.member)),
    workspace: statement(`usage.${name}_of_workspace`, sqlOf(shapes.workspace)),
    hours: statement(`usage.${name}_by_hour`, sqlOf(shapes.hours)),
    events: statement(`usage.${name}_of_events`, sqlOf(shapes.events)),
    eventsByHour: statement(`usage.${name}_of_events_by_hour`, sqlOf(shapes.events_by_hour)),
  }
}

const byok = `coalesce(sum(requests) filter (where byok), 0)::bigint as "byokRequests"`

/** The callers with the highest value. All others are one row, and calls without such a caller are another. */
function topCallers(part: 'agent' | 'member', from: string, column: string, names: string): string {
  return `
   select '${part}', null::date, null::smallint, null::text, null::text, c."requests", c."errors", c."promptTokens", c."completionTokens", c."valueUinr",
     c."costUinr", c."cachedTokens", c."cacheWriteTokens", 0::bigint, case when c.others = 0 then nullif(c.id, 0) end, c.others, n.name, n.email
   from (
     select min(id) as id, case when min(place) > ${callersMax} then count(*) else 0 end as others, ${sumColumns} from (
       select s.*, row_number() over (partition by id = 0 order by value_uinr desc, requests desc, id) as place from (
         select ${column} as id, ${addedSums} from ${from} group by 1) s) placed
     group by case when id = 0 then 0 else least(place, ${callersMax + 1}) end) c
   left join ${names} on n.id = c.id and c.others = 0`
}

const agentNames = '(select id, name, null::text as email from agents where org_id = $1::int) n'
const memberNames = `(select u.id, u.name, case when m.status = 'active' then u.email end as email from org_members m join users u on u.id = m.user_id where m.org_id = $1::int) n`

/** The models with the highest value keep their names, at most `$4`. All others are named `otherModels`. */
function sumsOf({ rows, hasHours, callers }: Shape): string {
  const hour = hasHours ? 'hour' : 'null::smallint'
  const sets = `${hasHours ? '(day, hour, model), ' : ''}(day, model), (model, provider), (model)`
  return `with found as (${rows}),
   top as (select model from found group by model order by sum(value_uinr) desc, sum(requests) desc, model limit $4::int),
   used as (
     select r.day, ${hasHours ? 'r.hour, ' : ''}coalesce(top.model, '${otherModels}') as model, r.provider, r.byok, ${rawSums.map(sum => `r.${sum}`).join(', ')}
     from found r left join top on top.model = r.model)${
       callers !== null && 'both' in callers ? `,\n   callers as (select agent_id, user_id, ${addedSums} from ${callers.both} group by 1, 2)` : ''
     }
   select 'model' as "part", day as "day", ${hour} as "hour", model as "model", provider as "provider", ${sumColumns}, ${byok}, null::int as "id",
     0::bigint as "others", null::text as "name", null::text as "email"
   from used group by grouping sets (${sets})${callers === null ? '' : listsOf('both' in callers ? { agents: 'callers', members: 'callers' } : callers)}
   order by "part", "day", "hour", "valueUinr" desc, "requests" desc, "model", "provider", "others", "id"`
}

const listsOf = ({ agents, members }: { readonly agents: string; readonly members: string }): string =>
  ` union all ${topCallers('agent', agents, 'agent_id', agentNames)} union all ${topCallers('member', members, 'user_id', memberNames)}`

function linesOf({ rows, hasHours }: Shape): string {
  const hour = hasHours ? 'hour' : 'null::smallint'
  return `with found as (${rows})
   select day as "day", ${hour} as "hour", model as "model", provider as "provider", ${sumColumns}
   from found group by day, ${hasHours ? 'hour, ' : ''}model, provider order by "day", "hour", "model", "provider" limit $4::int`
}

const sums = asked<ActivityRow>('sum_activity', sumsOf)
const lines = asked<ActivityLine>('list_activity_lines', linesOf)

/** Whose activity in which span, and how it is divided. */
export interface ActivityAsk {
  readonly orgId: number
  readonly span: DaySpan
  readonly group: ActivityGroup
  readonly filters: ActivityFilters
}

/** Returns the sums of a report. More than `modelsMax` models share a name. */
export const sumActivity = (db: Queryable, of: ActivityAsk, modelsMax: number): Promise<ActivityRow[]> => read(db, sums, of, modelsMax)

/** Returns the lines of a CSV, at most `max`. */
export const listActivityLines = (db: Queryable, of: ActivityAsk, max: number): Promise<ActivityLine[]> => read(db, lines, of, max)

/** Returns the parameters of a statement on single calls. `max` is its limit of models or rows. */
export function eventParams({ orgId, span, filters }: ActivityAsk, max: number): EventParams {
  const { model = null, provider = null, agentId = null, userId = null, workspaceId = null, keyId = null } = filters
  return [orgId, span.from, span.to, max, model, provider, agentId, userId, workspaceId, keyId, eventsMax + eventsSlack]
}

function read<R>(db: Queryable, statements: Asked<R>, of: ActivityAsk, max: number): Promise<R[]> {
  const { orgId, span, group, filters } = of
  const { model = null, provider = null, agentId = null, userId = null, workspaceId = null, keyId = 0 } = filters
  const whole: Span = [orgId, span.from, span.to, max, model, provider]
  const callers: Callers = [...whole, agentId, userId, workspaceId]
  const source = sourceOf(filters, group)
  switch (source) {
    case 'org':
      return db.many(model === null && provider === null ? statements.org : statements.orgFiltered, ...whole)
    case 'key':
      return db.many(statements.key, ...whole, keyId)
    case 'events':
      return db.many(group === 'hour' ? statements.eventsByHour : statements.events, ...eventParams(of, max))
    default:
      return db.many(statements[source], ...callers)
  }
}
