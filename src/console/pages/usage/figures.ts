/** The figures of the usage page. Cards, chart and table come from one reply of /me/activity, so that they never disagree. */
import type { ReplyOf } from '../../api/call.ts'
import { type Series, withRest } from '../../ui/charts/series.ts'
import type { Filters } from '../activity/filters.ts'
import { pointOfHour } from '../activity/span.ts'
import { type Figures, figureOf, type Group, type Metric } from './metrics.ts'
import { text } from './text.ts'

export type Activity = ReplyOf<'activity'>

/** A row of the table. */
export interface UsageRow extends Figures {
  readonly key: string
  readonly name: string
  /** The filter that shows only this row. Null for a row that no filter names, such as the sum of others. */
  readonly filter: Filters | null
}

/** Returns the figure of the whole span. Null without one, such as a percentile without served calls. */
export function totalOf(metric: Metric, { totals, latency }: Activity): number | null {
  return metric === 'p95' ? (latency?.p95_ms ?? null) : figureOf(metric, totals)
}

/** Returns the course of a metric: one series for each of the largest models, and one for the others. A percentile has a single series. */
export function seriesOf(activity: Activity, metric: Metric, points: readonly string[]): Series[] {
  const places = new Map(points.map((point, index) => [point, index]))
  const isHours = activity.group === 'hour'
  if (metric === 'p95') {
    const values = points.map(() => 0)
    for (const { day, hour, p95_ms: ms } of activity.latency?.by ?? []) {
      const place = places.get(hour === null ? day : pointOfHour(day, hour))
      if (place !== undefined) values[place] = ms ?? 0
    }
    return withRest([{ name: text.metrics.p95, values }])
  }
  const byModel = new Map<string, number[]>()
  const add = (model: string, point: string, row: Figures): void => {
    const place = places.get(point)
    if (place === undefined) return
    const values = byModel.get(model) ?? points.map(() => 0)
    values[place] = (values[place] ?? 0) + (figureOf(metric, row) ?? 0)
    byModel.set(model, values)
  }
  if (isHours) for (const row of activity.hours ?? []) add(row.model, pointOfHour(row.day, row.hour), row)
  else for (const row of activity.days) add(row.model, row.day, row)
  return withRest([...byModel].map(([name, values]) => ({ name, values })))
}

const microOfInr = (inr: number): number => Math.round(inr * 1_000_000)
const zero: Figures = { requests: 0, tokens: 0, cost_inr: 0, value_inr: 0 }

/** Adds up in millionths of a rupee, as the gateway does, so that no sum is off by a fraction. */
function plus(a: Figures, b: Figures, sign: 1 | -1 = 1): Figures {
  const errors = a.errors === undefined || b.errors === undefined ? {} : { errors: a.errors + sign * b.errors }
  return {
    requests: a.requests + sign * b.requests,
    tokens: a.tokens + sign * b.tokens,
    cost_inr: (microOfInr(a.cost_inr) + sign * microOfInr(b.cost_inr)) / 1_000_000,
    value_inr: (microOfInr(a.value_inr) + sign * microOfInr(b.value_inr)) / 1_000_000,
    ...errors,
  }
}

/** Returns the rows of a list that ends after some, and the rest of the totals as one more row. */
function completed(rows: readonly UsageRow[], totals: Figures, name: string): UsageRow[] {
  const rest = rows.reduce<Figures>((left, row) => plus(left, row, -1), totals)
  return rest.requests > 0 ? [...rows, { ...rest, key: 'rest', name, filter: null }] : [...rows]
}

function providersOf({ model_providers: models }: Activity): UsageRow[] {
  const sums = new Map<string, Figures>()
  for (const { providers } of models) for (const row of providers) sums.set(row.provider, plus(sums.get(row.provider) ?? zero, row))
  return [...sums]
    .map(([provider, sum]): UsageRow => ({ ...sum, key: provider, name: provider, filter: { provider } }))
    .sort((a, b) => b.value_inr - a.value_inr || b.requests - a.requests)
}

const isUsed = ({ requests }: Figures): boolean => requests > 0

/** Returns the rows of a group. They add up to the totals. Null when the gateway has no sums for the group with the filters. */
export function rowsOf(activity: Activity, group: Group): UsageRow[] | null {
  const { totals } = activity
  if (group === 'provider') return providersOf(activity)
  if (group === 'model') {
    const rows = activity.top_models.map((row): UsageRow => ({ ...row, key: row.model, name: row.model, filter: { model: row.model } }))
    return completed(rows, totals, text.otherModels(activity.model_providers.length - rows.length))
  }
  if (group === 'key') {
    const rows = activity.top_keys?.map(
      (row): UsageRow => ({
        ...row,
        key: `key ${row.key_id}`,
        name: row.key_id === null ? text.noKey : (row.name ?? text.unnamedKey(row.key_id)),
        filter: { key_id: row.key_id ?? 'none' },
      }),
    )
    return rows === undefined ? null : completed(rows, totals, text.otherKeys)
  }
  if (group === 'agent')
    return (
      activity.by_agent?.filter(isUsed).map((row): UsageRow => {
        const { agent_id: id, name, others } = row
        if (id === null) return { ...row, key: `none ${others}`, name: others === 0 ? text.noAgent : text.otherAgents(others), filter: null }
        return { ...row, key: `agent ${id}`, name: name ?? text.unnamedAgent(id), filter: { agent_id: id } }
      }) ?? null
    )
  return (
    activity.by_member?.filter(isUsed).map((row): UsageRow => {
      const { uid, name, email, others } = row
      if (uid === null) return { ...row, key: `none ${others}`, name: others === 0 ? text.noMember : text.otherMembers(others), filter: null }
      return { ...row, key: `member ${uid}`, name: name ?? email ?? text.unnamedMember(uid), filter: { uid } }
    }) ?? null
  )
}
