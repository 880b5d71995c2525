/**
 * Keeps the sums of usage by IST day, in the transaction of the flush that inserts the events: reports read a few rows of sums instead of
 * millions of events, and the two can never disagree.
 *
 * Flushes of several processes may touch the same rows. Every flush takes them in the same order, table by table and sorted within a table,
 * so that two can wait for each other but never both. Sums over all organisations come last and are split into shards.
 */
import type { Tx } from '../../platform/db.ts'
import { type BoundedLabels, boundedLabels } from './agent-labels.ts'
import { countOf, istDays, modelText, mondayOf, wholeMs } from './columns.ts'
import type { UsageEvent } from './record.ts'
import { addToAgentDays, addToDays, addToKeyDays, addToKeyModelDays, addToKeyWeeks, addToModelDays, addToModelLatencies } from './rollup-queries.ts'

/** Shards of the sums over all organisations. */
export const modelShards = 16
/** Latencies beyond 2^25 ms, nine hours, are in one bucket. */
const bucketMax = 200

/** Sums of one row, in the order of their columns. */
interface Sums {
  requests: bigint
  errors: bigint
  prompt_tokens: bigint
  completion_tokens: bigint
  cached_tokens: bigint
  cache_write_tokens: bigint
  value_uinr: bigint
  cost_uinr: bigint
}

/** The finest grouping: every table of an organisation is a coarser one of it. Absent is 0 or ''. */
interface Facts {
  readonly org_id: number
  readonly day: string
  readonly key_id: number
  readonly agent_id: number
  readonly agent_label: string
  readonly model: string
  readonly provider: string
  readonly residency: string
  readonly byok: boolean
}

interface ModelSums {
  requests: bigint
  tokens: bigint
  succeeded: bigint
  failed: bigint
  written_tokens: bigint
  written_ms: bigint
}

type Named = Readonly<Record<string, string | number | boolean>>
/** Rows of one table, by the text of their primary key. */
type Rows<S> = Map<string, { readonly key: Named; readonly sums: S }>

/** The bucket of a latency: n holds 2^(n/8) ms to below 2^((n+1)/8) ms. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(bucketMax, Math.floor(8 * Math.log2(ms)))
}

/** Adds the new events of a flush to the sums. `shard`: the one of this process, 0 to `modelShards` - 1. */
export function keepsSums(shard: number): (tx: Tx, events: readonly UsageEvent[]) => Promise<readonly string[]> {
  const labelOf = boundedLabels()
  return async (tx, events) => {
    await addToSums(tx, events, shard, labelOf)
    return []
  }
}

/** Adds events to the sums that are not in them yet. */
async function addToSums(tx: Tx, events: readonly UsageEvent[], shard: number, labelOf: BoundedLabels): Promise<void> {
  if (events.length === 0) return
  const facts: Rows<Sums> = new Map()
  const models: Rows<ModelSums> = new Map()
  const latencies: Rows<{ requests: bigint }> = new Map()
  const dayOf = istDays()
  for (const event of events) {
    const key = factsOf(event, dayOf(event.atMs), labelOf)
    const sums = sumsOf(event)
    add(facts, key, sums)
    if (isOwnServer(event)) continue
    const model = { day: key.day, model: key.model, shard }
    add(models, model, modelSumsOf(event, sums))
    if (isServed(event)) add(latencies, { day: key.day, model: key.model, bucket: latencyBucket(event.latencyMs), shard }, { requests: 1n })
  }
  await tx.exec(addToDays, coarser(facts, ['org_id', 'day', 'model', 'provider', 'residency', 'byok']))
  await tx.exec(addToKeyDays, coarser(facts, ['org_id', 'day', 'key_id']))
  await tx.exec(addToKeyModelDays, coarser(facts, ['org_id', 'key_id', 'day', 'model', 'provider', 'byok']))
  await tx.exec(addToKeyWeeks, weeksOf(facts))
  await tx.exec(addToAgentDays, coarser(facts, ['org_id', 'day', 'agent_id', 'agent_label', 'residency']))
  if (models.size > 0) await tx.exec(addToModelDays, jsonOf(models))
  if (latencies.size > 0) await tx.exec(addToModelLatencies, jsonOf(latencies))
}

function factsOf(event: UsageEvent, day: string, labelOf: BoundedLabels): Named & Facts {
  return {
    org_id: event.orgId,
    day,
    key_id: event.keyId ?? 0,
    agent_id: event.agentId ?? 0,
    // A label that stands beside a registered agent says nothing more.
    agent_label: event.agentId === null && event.agentLabel !== null ? labelOf(event.orgId, day, event.agentLabel) : '',
    model: modelText(event.model),
    provider: event.provider,
    residency: event.residency,
    byok: event.byok,
  }
}

function sumsOf(event: UsageEvent): Sums {
  return {
    requests: 1n,
    errors: event.outcome === 'ok' || event.outcome === 'client_gone' ? 0n : 1n,
    prompt_tokens: countOf(event.promptTokens),
    completion_tokens: countOf(event.completionTokens),
    cached_tokens: countOf(event.cachedTokens),
    cache_write_tokens: countOf(event.cacheWriteTokens),
    value_uinr: event.valueUinr,
    cost_uinr: event.costUinr,
  }
}

/** What an organisation's own server does is no figure of the model for everybody. */
const isOwnServer = ({ provider }: UsageEvent): boolean => provider.startsWith('byoe:')
const isServed = ({ outcome, status }: UsageEvent): boolean => outcome === 'ok' && status < 400
/** What a client did wrong, or what the gateway cut, is no failure of a model. */
const isFailed = ({ outcome, status }: UsageEvent): boolean => outcome === 'upstream_broke' || (outcome === 'failed' && status >= 500)

function modelSumsOf(event: UsageEvent, { prompt_tokens, completion_tokens }: Sums): ModelSums {
  const hasWritten = isServed(event) && completion_tokens > 0n
  return {
    requests: 1n,
    tokens: prompt_tokens + completion_tokens,
    succeeded: isServed(event) ? 1n : 0n,
    failed: isFailed(event) ? 1n : 0n,
    written_tokens: hasWritten ? completion_tokens : 0n,
    written_ms: hasWritten ? BigInt(wholeMs(event.latencyMs)) : 0n,
  }
}

function add<S extends { [name in keyof S]: bigint }>(rows: Rows<S>, key: Named, sums: S): void {
  const text = JSON.stringify(Object.values(key))
  const known = rows.get(text)
  if (known === undefined) {
    rows.set(text, { key, sums: { ...sums } })
    return
  }
  for (const name in sums) known.sums[name] = (known.sums[name] + sums[name]) as S[typeof name]
}

/** Rows with fewer names in their key, as JSON. */
function coarser(facts: Rows<Sums>, names: readonly (keyof Facts)[]): string {
  const rows: Rows<Sums> = new Map()
  for (const { key, sums } of facts.values()) add(rows, Object.fromEntries(names.map(name => [name, key[name] ?? ''])), sums)
  return jsonOf(rows)
}

/** Weeks by key and model, and by key with all models together. */
function weeksOf(facts: Rows<Sums>): string {
  const rows: Rows<Sums> = new Map()
  const weeks = new Map<string, string>()
  for (const { key, sums } of facts.values()) {
    const [day, model] = [String(key['day']), String(key['model'])]
    const week = weeks.get(day) ?? mondayOf(day)
    weeks.set(day, week)
    for (const name of new Set(['', model])) add(rows, { org_id: key['org_id'] ?? 0, model: name, week, key_id: key['key_id'] ?? 0 }, sums)
  }
  return jsonOf(rows)
}

/** Rows as JSON, sorted: all processes take the rows of a table in one order. */
function jsonOf<S extends { [name in keyof S]: bigint }>(rows: Rows<S>): string {
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return JSON.stringify(
    sorted.map(([, { key, sums }]) => ({ ...key, ...sums })),
    (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
  )
}
