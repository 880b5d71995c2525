/** The caps of the run of a call, before its admission. Limits hold the caps on cost and calls; the others are checked here. */
import type { Call } from '../../../../platform/endpoint.ts'
import { fail } from '../../../../platform/errors.ts'
import type { CallPolicy } from '../../../../platform/security/principal.ts'
import { type LoopRule, type RunCaps, stricterLoop } from '../../../../platform/security/run-caps.ts'
import { runAskOf } from '../../../wire/runs/run-ask.ts'
import type { RunOfCall } from '../../events/record.ts'
import type { CappedRun } from '../caps/capped-runs.ts'
import { lower, type RunRules } from '../caps/effective-caps.ts'
import { checkDepth, type NamedSubagent } from '../caps/subagents.ts'
import type { RunRef } from '../ended-runs.ts'

/** The agent that a call is charged to, and the policies that bind the call. */
interface CappedCaller {
  readonly agentId: number | null
  readonly ancestorIds: readonly number[]
  readonly policies: readonly CallPolicy[]
}

interface NamedRun {
  readonly run: RunOfCall
  readonly ref: RunRef
  /** The key of the run in memory. */
  readonly key: string
  /** The sub-agent that the client names. */
  readonly subagent: NamedSubagent | null
}

/** Throws `run_required` when a rule wants that each call names its run. It is called for a call without one. */
export function requireRun(policies: readonly CallPolicy[]): void {
  for (const { owner, run } of policies)
    if (run?.isRequired === true)
      throw fail('run_required', { message: `Each call of this ${owner} must name its run. Send x-br-run-id with the id of the job.` })
}

const noRules: RunRules = { owner: null, key: null }

/** Returns the rules for the runs of a call. The run belongs to the agent at the top of the family, otherwise to the key. */
function rulesOf(policies: readonly CallPolicy[], runAgentId: number | null): RunRules {
  let owner: RunCaps | null = null
  let key: RunCaps | null = null
  for (const policy of policies) {
    if (policy.run === undefined) continue
    if (policy.owner === 'agent') {
      if (policy.ownerId === runAgentId) owner = policy.run
    } else if (runAgentId === null) owner = policy.run
    else key = policy.run
  }
  return owner === null && key === null ? noRules : { owner, key }
}

/** Returns what happens to a loop of a run: the strictest rule of its agent and of the key, otherwise `warn`. */
export function loopRuleOf(policies: readonly CallPolicy[], runAgentId: number | null): LoopRule {
  const { owner, key } = rulesOf(policies, runAgentId)
  if (owner === null) return key?.loop ?? 'warn'
  return key === null ? owner.loop : stricterLoop(owner.loop, key.loop)
}

/**
 * Returns the run of the call when it has caps, after the caps that need no hold. Null when the run has no caps. Returns a promise only when the database
 * must be asked. Throws `bad_request`, `run_time_exceeded`, `run_subagents_exceeded`, `database_unavailable`.
 */
export function cappedRunOf(
  { run, ref, key, subagent: named }: NamedRun,
  agent: CappedCaller,
  { runHeaders }: Pick<Call, 'runHeaders'>,
  cappedRuns: RunsOfCalls | undefined,
): CappedRun | null | Promise<CappedRun> {
  if (cappedRuns === undefined) return null
  const rules = rulesOf(agent.policies, run.runAgentId)
  const found = cappedRuns.runs.of(key, ref, rules, runHeaders === undefined ? null : runAskOf(runHeaders))
  if (found === null) return null
  const checked = (capped: CappedRun): CappedRun | Promise<CappedRun> => {
    checkTime(capped, lower(capped.minutes, rules.key?.maxMinutes ?? null), cappedRuns.nowMs())
    const most = lower(capped.subagents, rules.key?.maxSubagents ?? null)
    const depth = lower(capped.depth, rules.key?.maxDepth ?? null)
    if (most === null && depth === null) return capped
    checkDepth(capped, agent.ancestorIds.length, depth)
    const subagent = named ?? childOf(agent)
    const entered = subagent === null ? undefined : cappedRuns.enter(capped, subagent, { most, depth })
    return entered === undefined ? capped : entered.then(() => capped)
  }
  return found instanceof Promise ? found.then(checked) : checked(found)
}

/** A child agent is a sub-agent of its run too, also when its client names none. */
function childOf({ agentId, ancestorIds: [parent, above] }: CappedCaller): { readonly name: string; readonly above: string | null } | null {
  if (parent === undefined) return null
  return { name: `agent:${agentId}`, above: above === undefined ? null : `agent:${parent}` }
}

function checkTime({ runId, firstAtMs }: CappedRun, minutes: number | null, nowMs: number): void {
  if (minutes === null || nowMs < firstAtMs + minutes * 60_000) return
  throw fail('run_time_exceeded', {
    extra: { scope: 'run', run_id: runId, cap: minutes, spent: Math.floor((nowMs - firstAtMs) / 60_000), held: 0 },
  })
}

/** The capped runs, as calls need them. */
export interface RunsOfCalls {
  readonly runs: { of(key: string, ref: RunRef, rules: RunRules, asked: ReturnType<typeof runAskOf>): CappedRun | null | Promise<CappedRun> }
  /** Lets a sub-agent into its run. Throws `run_subagents_exceeded`. */
  enter(
    run: CappedRun,
    subagent: { readonly name: string; readonly above: string | null },
    caps: { most: number | null; depth: number | null },
  ): void | Promise<void>
  /** The time of the database's clock in Unix milliseconds. */
  nowMs(): number
}
