/** The parts of an activity report, made from rows of sums. */
import { startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { type Figures, figuresOf, sumOf } from '../reports/usage-totals.ts'
import type { ActivityGroup } from './activity-filters.ts'
import type { ActivityLatency } from './activity-latency.ts'
import type { ActivityKeyRow } from './activity-queries.ts'
import type { ActivityRow } from './activity-sum-queries.ts'

type WithByok = Figures & { byok_requests: number }
interface NamedKey {
  /** Null for calls without a key. */
  key_id: number | null
  name: string | null
  revoked: boolean | null
}

export interface ActivityReport {
  from: string
  to: string
  group: ActivityGroup
  totals: WithByok
  days: (WithByok & { day: string; model: string })[]
  /** Only in a report by hour. `at` is the instant at which the hour begins. */
  hours?: (WithByok & { day: string; hour: number; at: string; model: string })[]
  top_models: (WithByok & { model: string })[]
  top_keys: (Figures & NamedKey)[] | null
  by_agent: (Figures & { agent_id: number | null; name: string | null; others: number })[] | null
  by_member: (Figures & { uid: number | null; name: string | null; email: string | null; others: number })[] | null
  model_providers: { model: string; providers: { provider: string; requests: number; tokens: number; cost_inr: number; value_inr: number }[] }[]
  latency: ActivityLatency | null
  models: string[]
  keys: NamedKey[]
}

/** Returns the sum of the rows. */
export function figuresWithByok(rows: readonly ActivityRow[]): WithByok {
  return { ...figuresOf(sumOf(rows)), byok_requests: Number(rows.reduce((sum, row) => sum + row.byokRequests, 0n)) }
}

export const namedKeyOf = ({ keyId, name, revoked }: ActivityKeyRow): NamedKey => ({ key_id: keyId, name, revoked })

const hourMs = 3600_000

/** Returns the hour of a row. Empty for a row that is not of an hour. */
export function hourOf(row: ActivityRow): NonNullable<ActivityReport['hours']> {
  if (row.day === null || row.hour === null) return []
  const at = new Date((startOfIstDayMs(row.day) ?? 0) + row.hour * hourMs).toISOString()
  return [{ day: row.day, hour: row.hour, at, model: row.model, ...figuresWithByok([row]) }]
}

/** Returns the agents with the highest value. One row has the calls without an agent, and one has all other agents. */
export function agentsOf(rows: readonly ActivityRow[]): NonNullable<ActivityReport['by_agent']> {
  return callersOf(rows, 'agent').map(row => ({ agent_id: row.id, name: row.name, others: Number(row.others), ...figuresOf(row) }))
}

/** Returns the members with the highest value, as `agentsOf` does. */
export function membersOf(rows: readonly ActivityRow[]): NonNullable<ActivityReport['by_member']> {
  return callersOf(rows, 'member').map(row => ({ uid: row.id, name: row.name, email: row.email, others: Number(row.others), ...figuresOf(row) }))
}

/** The row of all others comes last, whatever its value is. */
function callersOf(rows: readonly ActivityRow[], part: ActivityRow['part']): readonly ActivityRow[] {
  const callers = rows.filter(row => row.part === part)
  return [...callers.filter(row => row.others === 0n), ...callers.filter(row => row.others > 0n)]
}

type ProviderOfModel = ActivityReport['model_providers'][number]['providers'][number]

/** Returns the providers of each model, those with the highest value first. */
export function providersByModel(rows: readonly ActivityRow[]): ReadonlyMap<string, ProviderOfModel[]> {
  const byModel = new Map<string, ProviderOfModel[]>()
  for (const row of rows) {
    if (row.provider === null) continue
    const tokens = Number(row.promptTokens + row.completionTokens)
    const money = { cost_inr: inrFromUinr(row.costUinr), value_inr: inrFromUinr(row.valueUinr) }
    const provider = { provider: row.provider, requests: Number(row.requests), tokens, ...money }
    const known = byModel.get(row.model)
    if (known === undefined) byModel.set(row.model, [provider])
    else known.push(provider)
  }
  return byModel
}
