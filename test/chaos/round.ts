/** One round: random calls through three processes, one of which dies; then everything has to add up. */
import { systemClock } from '../../src/platform/clock.ts'
import { statement } from '../../src/platform/db/db.ts'
import { tokenUinr, type UsageRow } from '../harness/fleet.ts'
import { until } from '../harness/until.ts'
import { closeConnections, type Sent, send } from './client.ts'
import type { CallerName, Plan, Step } from './plan.ts'
import { type Caller, caps, labelOf, type Stage } from './stage.ts'

const processState = statement<[id: bigint], { state: string; leased: bigint; keys: number }>(
  'test.chaos_process_state',
  `select p.state as "state", (select coalesce(sum(l.amount), 0)::bigint from leases l where l.process_id = p.id) as "leased",
     (select count(*)::int from idempotency_keys k where k.process_id = p.id and k.state = 'reserved') as "keys"
   from processes p where p.id = $1::bigint`,
)
const spentOf = statement<[scope: string, scopeId: string, metric: string], { spent: bigint; leased: bigint }>(
  'test.chaos_spent',
  `select spent as "spent", leased as "leased" from counters where scope = $1::text and scope_id = $2::text and metric = $3::text`,
)
const rowsOfRound = statement<[keyIds: readonly number[], agentIds: readonly number[]], UsageRow>(
  'test.chaos_rows',
  `select key_id as "keyId", agent_label as "label", agent_id as "agentId", outcome as "outcome", estimated as "estimated", completion_tokens as "completionTokens", value_uinr as "valueUinr"
   from usage_events where key_id = any($1::int[]) or agent_id = any($2::int[])`,
)

/** A dead process must be accounted for within this time. */
const adoptionMs = 60_000
/** What a stream may have produced between its last note and its death: a second, and a margin for a busy machine. */
const noteEveryMs = 1500
/** Tokens that were on their way to the client when it was cut off. */
const inFlightTokens = 400n

export interface RoundResult {
  readonly plan: Plan
  readonly sent: number
  readonly complete: number
  readonly interrupted: number
  readonly adoptedMs: number
  /** Whether the barrier was reached; otherwise the process was killed at the end of the load. */
  readonly reached: boolean
  /** What does not add up, one sentence each; empty when all is well. */
  readonly wrong: readonly string[]
}

/** Plays the plan and checks the account. Leaves three living processes behind. */
export async function playRound(stage: Stage, plan: Plan): Promise<RoundResult> {
  const { fleet, members } = stage
  fleet.upstream.requests.length = 0
  closeConnections()
  const callers = await stage.newCallers()
  const victim = members[plan.victim]
  if (victim === undefined) throw new Error('a plan names a process that is not there')
  if (plan.barrier !== null) victim.arm(plan.barrier)
  const all: Sent[] = []
  const total = plan.lanes.length * (plan.lanes[0]?.length ?? 0)
  const play = async (step: Step): Promise<void> => {
    const one = (target: number): Promise<Sent> => send(members[target]?.baseUrl ?? '', callers[step.caller].token, step, target)
    const first = await one(step.target)
    all.push(first)
    if (plan.barrier === null && victim.diedAtMs() === null && all.length * 2 > total) void victim.kill()
    // Whoever lost the reply asks again with the same key.
    if (step.once && !first.isComplete && !step.hangsUp && (first.status === null || first.status === 200))
      all.push(await one((step.target + 1) % members.length))
  }
  await Promise.all(
    plan.lanes.map(async lane => {
      for (const step of lane) await play(step)
    }),
  )
  // Idle slices go back after two seconds without a call: then it gets to the barrier by itself.
  if (plan.barrier?.at === 'return') await until(() => victim.diedAtMs() !== null, 'the idle slices go back', 4000).catch(() => undefined)
  const reached = victim.diedAtMs() !== null
  if (!reached) await victim.kill()
  const replaced = stage.replace(plan.victim)
  const diedAtMs = victim.diedAtMs() ?? Date.now()
  await until(async () => (await fleet.db.one(processState, victim.id)).state === 'closed', `the adoption of process ${victim.id}`, adoptionMs)
  const adoptedMs = Date.now() - diedAtMs
  await replaced
  const wrong = await judge(stage, plan, callers, all, { id: victim.id, diedAtMs })
  const rows = await rowsOf(stage, callers)
  return {
    plan,
    sent: all.length,
    complete: all.filter(one => one.isComplete).length,
    interrupted: rows.filter(row => row.outcome === 'interrupted').length,
    adoptedMs,
    reached: reached && plan.barrier !== null,
    wrong,
  }
}

const rowsOf = ({ fleet }: Stage, callers: Readonly<Record<CallerName, Caller>>): Promise<UsageRow[]> =>
  fleet.db.many(
    rowsOfRound,
    Object.values(callers).flatMap(caller => caller.keyId ?? []),
    Object.values(callers).flatMap(caller => caller.agentId ?? []),
  )

async function judge(
  stage: Stage,
  plan: Plan,
  callers: Readonly<Record<CallerName, Caller>>,
  all: readonly Sent[],
  dead: { id: bigint; diedAtMs: number },
): Promise<string[]> {
  const { fleet } = stage
  const wrong: string[] = []
  const steps = new Map(plan.lanes.flat().map(step => [step.label, step]))
  const dialed = new Map<string, number>()
  for (const request of fleet.upstream.requests) dialed.set(labelOf(request), (dialed.get(labelOf(request)) ?? 0) + 1)
  const isAgents = (name: CallerName): boolean => name === 'agent' || name === 'child'
  const dials = [...dialed.values()].reduce((sum, count) => sum + count, 0)
  // Survivors flush within moments; what is missing then is missing.
  let rows: UsageRow[] = []
  await until(
    async () => {
      const before = rows.length
      await systemClock.sleep(100)
      rows = await rowsOf(stage, callers)
      return rows.length === before && rows.length >= dials
    },
    `${dials} dialed calls have rows`,
    15_000,
  ).catch((error: Error) => wrong.push(error.message))

  for (const [label, count] of dialed) {
    const step = steps.get(label)
    if (step === undefined) continue
    if (step.once && count > 1) wrong.push(`${label} was sent to the provider ${count} times with one Idempotency-Key`)
    if (isAgents(step.caller)) continue
    const own = rows.filter(row => row.label === label)
    if (own.length !== count) wrong.push(`${label} (${step.caller}) was dialed ${count} times and has ${own.length} rows`)
  }
  for (const one of all)
    if (!isAgents(one.step.caller))
      wrong.push(
        ...judgeCall(
          one,
          rows.filter(row => row.label === one.step.label),
          dead,
          stage.hasOnePort || one.target === plan.victim,
        ),
      )
  for (const name of ['agent', 'child'] as const) {
    const own = rows.filter(row => row.agentId === callers[name].agentId)
    const ofCaller = [...dialed].filter(([label]) => steps.get(label)?.caller === name).reduce((sum, [, count]) => sum + count, 0)
    const undialed = own.filter(row => row.outcome === 'interrupted' && row.valueUinr === 0n).length
    if (own.length < ofCaller || own.length > ofCaller + undialed)
      wrong.push(`${name}: ${ofCaller} calls were dialed, ${own.length} rows, ${undialed} without value`)
    const complete = all.filter(one => one.step.caller === name && one.isComplete).length
    const ok = own.filter(row => row.outcome === 'ok' && !row.estimated).length
    if (ok < complete) wrong.push(`${name}: ${complete} replies were complete, ${ok} rows say so`)
  }
  if (stage.hasOnePort) wrong.push(...judgeConnections(plan, all))
  for (const { hung, step, target } of all) if (hung) wrong.push(`${step.label} (${step.caller}) got nothing from process ${target} for half a minute`)
  for (const row of rows) if (row.outcome === 'interrupted' && !row.estimated) wrong.push(`an interrupted row of ${row.label} is not flagged`)
  wrong.push(...(await judgeCaps(stage, callers, rows)))
  const left = await fleet.db.one(processState, dead.id)
  if (left.leased !== 0n) wrong.push(`the dead process still leases ${left.leased}`)
  if (left.keys !== 0) wrong.push(`${left.keys} idempotency keys are reserved for the dead process`)
  wrong.push(...(await fleet.violations()))
  return wrong
}

/** One call of a key: its reply against its rows. */
function judgeCall(
  { step, isComplete, arrivals, status }: Sent,
  rows: readonly UsageRow[],
  dead: { readonly diedAtMs: number },
  mayBeAtVictim: boolean,
): string[] {
  const wrong: string[] = []
  const full = BigInt(step.tokens)
  const name = `${step.label} (${step.caller}${step.stream ? ', stream' : ''})`
  for (const row of rows) {
    if (row.valueUinr !== row.completionTokens * tokenUinr) wrong.push(`${name}: ${row.completionTokens} tokens cost ${row.valueUinr}`)
    if (row.completionTokens > full) wrong.push(`${name}: ${row.completionTokens} tokens are more than ${full}`)
    if (row.outcome === 'ok' && row.completionTokens !== full) wrong.push(`${name}: ok with ${row.completionTokens} of ${full} tokens`)
  }
  if (isComplete && !rows.some(row => row.outcome === 'ok' && !row.estimated))
    wrong.push(`${name}: its reply was complete, its rows are ${rows.map(row => row.outcome)}`)
  const cut = rows.find(row => row.outcome === 'interrupted')
  if (cut !== undefined && mayBeAtVictim && status === 200 && !isComplete && step.stream) {
    const seen = arrivals.findLast(arrival => arrival.atMs < dead.diedAtMs - noteEveryMs)?.chars ?? 0
    const most = arrivals.at(-1)?.chars ?? 0
    if (cut.completionTokens < BigInt(Math.floor(seen / 3)) - 20n)
      wrong.push(`${name}: interrupted at ${cut.completionTokens} tokens, ${seen} characters were out a second before`)
    if (cut.completionTokens > BigInt(Math.ceil(most / 3)) + inFlightTokens)
      wrong.push(`${name}: interrupted at ${cut.completionTokens} tokens, only ${most} characters were out`)
  }
  return wrong
}

/** A lane has one connection at a time, so the death of one worker breaks at most one call of each lane. The other workers serve all other calls. */
function judgeConnections({ lanes }: Plan, all: readonly Sent[]): string[] {
  const unanswered = all.filter(({ status, hung }) => status === null && !hung).length
  return unanswered > lanes.length ? [`${unanswered} calls of ${lanes.length} lanes had no answer, and only one worker died`] : []
}

/** No cap is passed by more than the one last call; the day counts what was served. */
async function judgeCaps({ fleet }: Stage, callers: Readonly<Record<CallerName, Caller>>, rows: readonly UsageRow[]): Promise<string[]> {
  const wrong: string[] = []
  const most = 300n
  const sum = (own: readonly UsageRow[]): bigint => own.reduce((total, row) => total + row.completionTokens, 0n)
  const caught = (name: string, spent: bigint, cap: number): void => {
    if (spent > BigInt(cap) + most) wrong.push(`${name} spent ${spent} tokens of ${cap}`)
  }
  caught('the key near its cap', sum(rows.filter(row => row.keyId === callers.near.keyId)), caps.nearTokens)
  caught('the child', sum(rows.filter(row => row.agentId === callers.child.agentId)), caps.childTokens)
  caught(
    'the agent with its child',
    sum(rows.filter(row => row.agentId !== null && [callers.agent.agentId, callers.child.agentId].includes(row.agentId))),
    caps.agentTokens,
  )
  // A call of the child counts in the agent above it as well.
  const family = rows.filter(row => row.agentId !== null).reduce((total, row) => total + row.valueUinr, 0n)
  const parent = await fleet.db.maybe(spentOf, 'agent', String(callers.agent.agentId), 'spend')
  if ((parent?.spent ?? 0n) !== family) wrong.push(`the agent counts ${parent?.spent} with its child, their rows sum to ${family}`)
  const ofDay = rows.filter(row => row.keyId === callers.daily.keyId).length
  if (ofDay > caps.daily) wrong.push(`${ofDay} calls of a limit of ${caps.daily} a day`)
  const day = await fleet.db.maybe(spentOf, 'key', String(callers.daily.keyId), 'daily')
  if (day !== null && day.spent !== BigInt(ofDay)) wrong.push(`the day counts ${day.spent} calls, ${ofDay} have rows`)
  return wrong
}
