/**
 * Keeps a row of sums for each run. The sums change in the transaction of the flush that inserts the events, so sums and events cannot disagree, also
 * after a process has died. A flush without a run makes no statement. Decision 0793 gives the reasons.
 */
import type { Tx } from '../../../platform/db/db.ts'
import { parsedObject } from '../../../platform/values/json.ts'
import { tagsMax } from '../../wire/runs/run-tags.ts'
import { istDays, modelText, tokensOf } from '../events/columns.ts'
import type { UsageEvent } from '../events/record.ts'
import { addToRunParts, addToRunSubagents, addToRuns, countRunDays, holdRunDays, insertRuns, type RunKeyRow } from './run-sum-queries.ts'

/** The most runs of an organisation that get a row on one IST day. The calls of further runs are added up in one row. */
export const runsMax = 100_000
/** The id of the row for the calls of all further runs of a day. */
export const otherRuns = '(others)'
/** The most pairs of agent and model of a run that have sums of their own. */
const partsMax = 200
/** The most sub-agents of a run that have sums of their own. */
const subagentsMax = 200

/** Who a run belongs to. `others`: the calls without a row of their own; the id is then the day as a number. */
export type RunOwnerKind = 'agent' | 'key' | 'others'

interface Sums {
  calls: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  cached_tokens: number
  value_uinr: bigint
  cost_uinr: bigint
}

/** The calls of one run in a flush. */
interface RunCalls {
  readonly orgId: number
  readonly ownerKind: RunOwnerKind
  readonly ownerId: number
  readonly runId: string
  firstMs: number
  lastMs: number
  readonly sums: Sums
  readonly parts: Map<string, { readonly agentId: number; readonly model: string; readonly sums: Sums }>
  /** By the name of the sub-agent. */
  readonly subagents: Map<string, Sums>
  /** The first value of each tag. Null: none. */
  tags: Readonly<Record<string, string>> | null
}

/** What the calls of a run with counters in one flush have used. */
export interface RunUsed extends Omit<RunKeyRow, 'capped'> {
  readonly valueUinr: bigint
  readonly calls: bigint
  readonly lastMs: number
}

/** Adds what runs have used to their counters. */
export type ChargeRuns = (tx: Tx, runs: readonly RunUsed[]) => Promise<void>

/** Returns a function that adds the new events of a flush to the sums of their runs, and to the counters of runs with caps. */
export function keepsRuns(charge: ChargeRuns, runsOfDayMax = runsMax): (tx: Tx, events: readonly UsageEvent[]) => Promise<readonly string[]> {
  return async (tx, events) => {
    const runs = new Map<string, RunCalls>()
    for (const event of events) if (event.runId !== undefined) addEvent(runs, event, event.runId)
    if (runs.size > 0) await charge(tx, await addRuns(tx, runs, runsOfDayMax))
    return []
  }
}

const keyOf = ({ orgId, ownerKind, ownerId, runId }: Pick<RunKeyRow, 'orgId' | 'ownerKind' | 'ownerId' | 'runId'>): string =>
  `${orgId}\u0000${ownerKind}\u0000${ownerId}\u0000${runId}`

function addEvent(runs: Map<string, RunCalls>, event: UsageEvent, runId: string): void {
  const agentId = event.runAgentId ?? null
  const owner = agentId === null ? ({ ownerKind: 'key', ownerId: event.keyId ?? 0 } as const) : ({ ownerKind: 'agent', ownerId: agentId } as const)
  const run = runIn(runs, { orgId: event.orgId, ...owner, runId }, event.atMs)
  run.firstMs = Math.min(run.firstMs, event.atMs)
  run.lastMs = Math.max(run.lastMs, event.atMs)
  add(run.sums, event)
  const part = { agentId: event.agentId ?? 0, model: modelText(event.model) }
  const partKey = `${part.agentId}\u0000${part.model}`
  const known = run.parts.get(partKey) ?? { ...part, sums: noSums() }
  run.parts.set(partKey, known)
  add(known.sums, event)
  const { runSubagent, tags } = event
  if (tags !== undefined) run.tags = withTags(run.tags, parsedObject(tags) ?? {})
  if (runSubagent === undefined) return
  const name = runSubagent.slice(0, nameMaxChars)
  const ofSubagent = run.subagents.get(name) ?? noSums()
  run.subagents.set(name, ofSubagent)
  add(ofSubagent, event)
}

const nameMaxChars = 256

/** Adds the tags of a call to those of its run, which has the first value of each. */
function withTags(tags: RunCalls['tags'], more: Readonly<Record<string, unknown>>): RunCalls['tags'] {
  const made: Record<string, string> = { ...tags }
  for (const [key, value] of Object.entries(more))
    if (!Object.hasOwn(made, key) && typeof value === 'string' && Object.keys(made).length < tagsMax) made[key] = value
  return made
}

function runIn(runs: Map<string, RunCalls>, key: Pick<RunCalls, 'orgId' | 'ownerKind' | 'ownerId' | 'runId'>, atMs: number): RunCalls {
  const text = keyOf(key)
  const known = runs.get(text)
  if (known !== undefined) return known
  const made = { ...key, firstMs: atMs, lastMs: atMs, sums: noSums(), parts: new Map(), subagents: new Map(), tags: null }
  runs.set(text, made)
  return made
}

const noSums = (): Sums => ({ calls: 0, errors: 0, prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, value_uinr: 0n, cost_uinr: 0n })

function add(sums: Sums, event: UsageEvent): void {
  // A further call of an image panel is a part of its first call.
  if (event.runPart !== true) sums.calls++
  if (event.outcome !== 'ok' && event.outcome !== 'client_gone') sums.errors++
  sums.prompt_tokens += tokensOf(event.promptTokens)
  sums.completion_tokens += tokensOf(event.completionTokens)
  sums.cached_tokens += tokensOf(event.cachedTokens)
  sums.value_uinr += event.valueUinr
  sums.cost_uinr += event.costUinr
}

function addSums(sums: Sums, more: Sums): void {
  sums.calls += more.calls
  sums.errors += more.errors
  sums.prompt_tokens += more.prompt_tokens
  sums.completion_tokens += more.completion_tokens
  sums.cached_tokens += more.cached_tokens
  sums.value_uinr += more.value_uinr
  sums.cost_uinr += more.cost_uinr
}

/** Returns the runs with counters. */
async function addRuns(tx: Tx, runs: ReadonlyMap<string, RunCalls>, runsOfDayMax: number): Promise<RunUsed[]> {
  const dayOf = istDays()
  const days = new Map<string, { readonly orgId: number; readonly day: string }>()
  for (const { orgId, lastMs } of runs.values()) days.set(`${orgId} ${dayOf(lastMs)}`, { orgId, day: dayOf(lastMs) })
  const asked = [...days.values()]
  const begun = await tx.many(
    holdRunDays,
    asked.map(({ orgId }) => orgId),
    asked.map(({ day }) => day),
  )
  const sorted = [...runs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, run]) => run)
  const known = await tx.many(addToRuns, rowsOf(sorted, dayOf))
  const numbers = new Map(known.map(row => [keyOf(row), row.number]))
  const capped = known.filter(row => row.capped)
  const unknown = sorted.filter(run => !numbers.has(keyOf(run)))
  const written = sorted.filter(run => numbers.has(keyOf(run)))
  if (unknown.length > 0) {
    const room = new Map(begun.map(({ orgId, day, runs: count }) => [`${orgId} ${day}`, runsOfDayMax - count]))
    // The numbers of new rows follow the order in which the runs began.
    const made = withinRoom(
      unknown.toSorted((a, b) => a.firstMs - b.firstMs),
      room,
      dayOf,
    )
    for (const row of await tx.many(insertRuns, rowsOf(made, dayOf))) {
      numbers.set(keyOf(row), row.number)
      if (row.capped) capped.push(row)
    }
    written.push(...made)
    await countNew(tx, made, dayOf)
  }
  await tx.exec(addToRunParts, partRowsOf(written, numbers), partsMax)
  const subagents = subagentRowsOf(written, numbers)
  if (subagents !== null) await tx.exec(addToRunSubagents, subagents, subagentsMax)
  return capped.flatMap(({ capped: _, ...row }) => usedOf(runs.get(keyOf(row)), row))
}

const usedOf = (run: RunCalls | undefined, row: Omit<RunKeyRow, 'capped'>): RunUsed[] =>
  run === undefined ? [] : [{ ...row, valueUinr: run.sums.value_uinr, calls: BigInt(run.sums.calls), lastMs: run.lastMs }]

/** Returns the new runs for which their day has room, and one run with the calls of all others of the day. */
function withinRoom(unknown: readonly RunCalls[], room: Map<string, number>, dayOf: (ms: number) => string): RunCalls[] {
  const made: RunCalls[] = []
  const others = new Map<string, RunCalls>()
  for (const run of unknown) {
    const day = dayOf(run.lastMs)
    const left = room.get(`${run.orgId} ${day}`) ?? 0
    room.set(`${run.orgId} ${day}`, left - 1)
    if (left > 0) made.push(run)
    else addRun(runIn(others, { orgId: run.orgId, ownerKind: 'others', ownerId: Number(day.replaceAll('-', '')), runId: otherRuns }, run.firstMs), run)
  }
  return [...made, ...others.values()]
}

function addRun(to: RunCalls, run: RunCalls): void {
  to.firstMs = Math.min(to.firstMs, run.firstMs)
  to.lastMs = Math.max(to.lastMs, run.lastMs)
  addSums(to.sums, run.sums)
  for (const [key, part] of run.parts) {
    const known = to.parts.get(key) ?? { ...part, sums: noSums() }
    to.parts.set(key, known)
    addSums(known.sums, part.sums)
  }
}

async function countNew(tx: Tx, made: readonly RunCalls[], dayOf: (ms: number) => string): Promise<void> {
  const counts = new Map<string, { readonly orgId: number; readonly day: string; runs: number }>()
  for (const { orgId, ownerKind, lastMs } of made) {
    if (ownerKind === 'others') continue
    const day = dayOf(lastMs)
    const count = counts.get(`${orgId} ${day}`) ?? { orgId, day, runs: 0 }
    count.runs++
    counts.set(`${orgId} ${day}`, count)
  }
  const rows = [...counts.values()]
  if (rows.length === 0) return
  await tx.exec(
    countRunDays,
    rows.map(({ orgId }) => orgId),
    rows.map(({ day }) => day),
    rows.map(row => row.runs),
  )
}

const jsonOf = (rows: readonly object[]): string => JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))

function rowsOf(runs: readonly RunCalls[], dayOf: (ms: number) => string): string {
  return jsonOf(
    runs.map(({ orgId, ownerKind, ownerId, runId, firstMs, lastMs, sums, tags }) => ({
      org_id: orgId,
      owner_kind: ownerKind,
      owner_id: ownerId,
      run_id: runId,
      first_at: new Date(firstMs).toISOString(),
      last_at: new Date(lastMs).toISOString(),
      last_day: dayOf(lastMs),
      tags,
      ...sums,
    })),
  )
}

function partRowsOf(runs: readonly RunCalls[], numbers: ReadonlyMap<string, bigint>): string {
  return jsonOf(
    runs.flatMap(run =>
      [...run.parts.values()].map(({ agentId, model, sums }) => ({ run_number: numbers.get(keyOf(run)), agent_id: agentId, model, ...sums })),
    ),
  )
}

/** Returns the rows of the sub-agents. Null when no run has any. */
function subagentRowsOf(runs: readonly RunCalls[], numbers: ReadonlyMap<string, bigint>): string | null {
  const rows = runs.flatMap(run => [...run.subagents].map(([name, sums]) => ({ run_number: numbers.get(keyOf(run)), name, ...sums })))
  return rows.length === 0 ? null : jsonOf(rows)
}
