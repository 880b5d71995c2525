/**
 * Keeps the sums of usage by IST day, and by hour for the last month. The sums change in the transaction of the flush that inserts the events, so sums and events cannot disagree.
 * Reports read a few rows of sums instead of millions of events.
 *
 * Flushes of several processes may change the same rows. Every flush locks them in the same order: table by table, and by primary key within a table.
 * Flushes therefore cannot deadlock. Sums over all organisations come last and are split into shards. Decision 0364 gives the reasons.
 */
import type { Tx } from '../../../platform/db/db.ts'
import { boundedNames, labelsMax, modelsMax, otherLabels, otherModels, publicModel } from '../events/bounded-names.ts'
import { mondayOf } from '../events/columns.ts'
import type { UsageEvent } from '../events/record.ts'
import { emptyModelRollup, emptyRollup, type Facts, type Group, groupsOf, type ModelRollup, type Rollup } from './rollup-groups.ts'
import {
  addToAgentDays,
  addToCallerDays,
  addToCallerHours,
  addToDayLatencies,
  addToDays,
  addToHourLatencies,
  addToKeyDays,
  addToKeyModelDays,
  addToKeyWeeks,
  addToMemberDays,
  addToModelDays,
  addToModelLatencies,
} from './rollup-queries.ts'

/** Number of shards of the sums over all organisations. */
export const modelShards = 16

type Named = Readonly<Record<string, string | number | boolean>>
/** Rows of one table, by the text of their primary key. */
type Rows<S> = Map<string, { readonly key: Named; readonly sums: S }>

/** Returns a function that adds the new events of a flush to the sums. `shard` is this process's shard, from 0 to `modelShards` - 1. */
export function keepsRollups(shard: number): (tx: Tx, events: readonly UsageEvent[]) => Promise<readonly string[]> {
  const labelOf = boundedNames(labelsMax, otherLabels)
  const modelOf = boundedNames(modelsMax, otherModels)
  return async (tx, events) => {
    await addToRollups(tx, groupsOf(events, labelOf, modelOf), shard)
    return []
  }
}

/** Adds groups of events that are not in the sums yet. */
async function addToRollups(tx: Tx, groups: readonly Group[], shard: number): Promise<void> {
  if (groups.length === 0) return
  await tx.exec(addToDays, coarser(groups, ['org_id', 'day', 'model', 'provider', 'residency', 'byok']))
  await tx.exec(addToKeyDays, coarser(groups, ['org_id', 'day', 'key_id']))
  await tx.exec(addToKeyModelDays, coarser(groups, ['org_id', 'key_id', 'day', 'model', 'provider', 'byok']))
  await tx.exec(addToKeyWeeks, weeksOf(groups))
  await tx.exec(addToAgentDays, coarser(groups, ['org_id', 'day', 'agent_id', 'agent_label', 'residency']))
  await tx.exec(addToCallerDays, coarser(groups, ['org_id', 'day', 'user_id', 'workspace_id', 'agent_id', 'model', 'provider', 'byok']))
  await tx.exec(addToMemberDays, coarser(groups, ['org_id', 'day', 'user_id']))
  await tx.exec(addToCallerHours, coarser(groups, ['org_id', 'day', 'hour', 'user_id', 'workspace_id', 'agent_id', 'model', 'provider', 'byok']))
  const served = groups.filter(group => group.latencies.size > 0)
  if (served.length > 0) {
    await tx.exec(addToDayLatencies, latenciesOf(served, ['day']))
    await tx.exec(addToHourLatencies, latenciesOf(served, ['day', 'hour']))
  }
  const { models, latencies } = modelsOf(groups, shard)
  if (models.size > 0) await tx.exec(addToModelDays, jsonOf(models))
  if (latencies.size > 0) await tx.exec(addToModelLatencies, jsonOf(latencies))
}

/** Returns the sums of a key, and adds an empty row when there is none. */
function rowOf<S>(rows: Rows<S>, key: Named, nothing: () => S): S {
  const text = JSON.stringify(Object.values(key))
  const known = rows.get(text)
  if (known !== undefined) return known.sums
  const sums = nothing()
  rows.set(text, { key, sums })
  return sums
}

function add(sums: Rollup, more: Rollup): void {
  sums.requests += more.requests
  sums.errors += more.errors
  sums.prompt_tokens += more.prompt_tokens
  sums.completion_tokens += more.completion_tokens
  sums.cached_tokens += more.cached_tokens
  sums.cache_write_tokens += more.cache_write_tokens
  sums.value_uinr += more.value_uinr
  sums.cost_uinr += more.cost_uinr
}

function addModel(sums: ModelRollup, more: ModelRollup): void {
  sums.requests += more.requests
  sums.tokens += more.tokens
  sums.succeeded += more.succeeded
  sums.failed += more.failed
  sums.written_tokens += more.written_tokens
  sums.written_ms += more.written_ms
}

/** Groups by the named fields only, and returns the rows as JSON. */
function coarser(groups: readonly Group[], names: readonly (keyof Facts)[]): string {
  const rows: Rows<Rollup> = new Map()
  for (const { facts, sums } of groups) add(rowOf(rows, Object.fromEntries(names.map(name => [name, facts[name]])), emptyRollup), sums)
  return jsonOf(rows)
}

/** Returns latencies as JSON: by model and provider, by each of them, and of all calls. `names` are the other fields. */
function latenciesOf(groups: readonly Group[], names: readonly (keyof Facts)[]): string {
  const rows: Rows<{ requests: number }> = new Map()
  for (const { facts, latencies } of groups) {
    const span = Object.fromEntries(names.map(name => [name, facts[name]]))
    for (const [bucket, requests] of latencies)
      for (const model of new Set(['', facts.model]))
        for (const provider of new Set(['', facts.provider])) {
          const key = { org_id: facts.org_id, model, provider, ...span, bucket }
          rowOf(rows, key, () => ({ requests: 0 })).requests += requests
        }
  }
  return jsonOf(rows)
}

/** Returns sums by week as JSON: for each key and model, and for each key over all models. */
function weeksOf(groups: readonly Group[]): string {
  const rows: Rows<Rollup> = new Map()
  const weeks = new Map<string, string>()
  for (const { facts, sums } of groups) {
    const week = weeks.get(facts.day) ?? mondayOf(facts.day)
    weeks.set(facts.day, week)
    for (const model of new Set(['', facts.model])) add(rowOf(rows, { org_id: facts.org_id, model, week, key_id: facts.key_id }, emptyRollup), sums)
  }
  return jsonOf(rows)
}

/** Returns the rows over all organisations: sums by model, and latencies by model. */
function modelsOf(groups: readonly Group[], shard: number): { models: Rows<ModelRollup>; latencies: Rows<{ requests: number }> } {
  const models: Rows<ModelRollup> = new Map()
  const latencies: Rows<{ requests: number }> = new Map()
  for (const { facts, model, latencies: served } of groups) {
    if (model === null) continue
    const key = { day: facts.day, model: publicModel(facts.model, facts.provider, facts.byok) }
    addModel(rowOf(models, { ...key, shard }, emptyModelRollup), model)
    for (const [bucket, requests] of served) rowOf(latencies, { ...key, bucket, shard }, () => ({ requests: 0 })).requests += requests
  }
  return { models, latencies }
}

/** Returns the rows as JSON, sorted by primary key, so that all processes lock the rows of a table in the same order. */
function jsonOf<S>(rows: Rows<S>): string {
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return JSON.stringify(
    sorted.map(([, { key, sums }]) => ({ ...key, ...sums })),
    (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
  )
}
