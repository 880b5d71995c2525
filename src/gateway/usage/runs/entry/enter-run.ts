/**
 * Lets a call into its run. Calls of models and calls of tools enter here, so that the order of ids, the caps and the end of a run are the same for both.
 * Decision 0852 gives the reasons.
 */
import type { Call } from '../../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../../platform/errors.ts'
import { CallCutError } from '../../../../platform/loop/inflight.ts'
import type { BearerPrincipal, CallPolicy } from '../../../../platform/security/principal.ts'
import type { LoopRule } from '../../../../platform/security/run-caps.ts'
import { brHeader } from '../../../wire/response-headers.ts'
import { subagentOf } from '../../../wire/runs/run-ask.ts'
import { chosenRunId } from '../../../wire/runs/run-id.ts'
import type { RunOfCall } from '../../events/record.ts'
import type { CappedRun } from '../caps/capped-runs.ts'
import { type EndedRuns, type RunRef, runEndedError, runKeyOf, runRefOf } from '../ended-runs.ts'
import { cappedRunOf, loopRuleOf, type RunsOfCalls, requireRun } from './run-caps.ts'

/** The agent that a call is charged to, and the policies that bind the call. */
export interface RunCaller {
  /** The charged agent. Null when there is none. */
  readonly agentId: number | null
  readonly ancestorIds: readonly number[]
  readonly policies: readonly CallPolicy[]
}

/** The run of a call. */
export interface EnteredRun {
  readonly run: RunOfCall
  readonly ref: RunRef
  /** The key of the run in memory. */
  readonly key: string
  /** The run with its caps. Null when it has none. */
  readonly capped: CappedRun | null
  /** What happens to a loop of this run. */
  readonly loop: LoopRule
  /** The main agent (empty), the sub-agent or the child agent that makes the call. */
  readonly actor: string
}

export interface RunEntryDeps {
  /** The ended runs. Absent when no run can be ended. */
  readonly endedRuns?: Pick<EndedRuns, 'enter'> | undefined
  /** The runs with caps. Absent when no run has any. */
  readonly cappedRuns?: RunsOfCalls | undefined
}

/** Returns the id of the run of a call. The claim of a token decides. Throws `bad_request` when the call names another run than the token. */
export const runIdFor = (principal: BearerPrincipal, named: string | null): string | null =>
  chosenRunId(principal.kind === 'agent' ? principal.runId : undefined, named)

/**
 * Returns the run of a call, or null for a call without one. The run belongs to the agent at the top of the family, otherwise to the key. The end of the run
 * cuts the call from here on. Returns a promise only when the database must be asked. Throws `run_required`, `run_ended`, `bad_request`,
 * `run_time_exceeded`, `run_subagents_exceeded` and `database_unavailable`.
 */
export function enterRun(
  principal: BearerPrincipal,
  caller: RunCaller,
  runId: string | null,
  call: Pick<Call, 'joinRun' | 'runHeaders'>,
  { endedRuns, cappedRuns }: RunEntryDeps,
): EnteredRun | null | Promise<EnteredRun> {
  const { agentId, ancestorIds, policies } = caller
  if (runId === null) {
    if (policies.length > 0) requireRun(policies)
    return null
  }
  const subagent = call.runHeaders === undefined ? null : subagentOf(call.runHeaders, runId)
  const run: RunOfCall = {
    runId,
    runAgentId: ancestorIds.at(-1) ?? agentId,
    ...(subagent === null ? {} : { runSubagent: subagent.name }),
  }
  const ref = runRefOf(principal.orgId, principal.keyId, run)
  const key = endedRuns?.enter(ref, call.joinRun) ?? runKeyOf(ref)
  const loop = policies.length === 0 ? 'warn' : loopRuleOf(policies, run.runAgentId)
  const actor = subagent?.name ?? (agentId === run.runAgentId ? '' : `agent:${agentId}`)
  const capped = cappedRunOf({ run, ref, key, subagent }, caller, call, cappedRuns)
  return capped instanceof Promise ? capped.then(found => ({ run, ref, key, capped: found, loop, actor })) : { run, ref, key, capped, loop, actor }
}

/** A registered agent that a plain key names. */
export interface NamedRunAgent {
  readonly status: string
  readonly ancestorIds: readonly number[]
}

/**
 * Returns the error for a key that calls in the name of a revoked agent. The runs of a revoked agent are ended, so a call of one of them gets `run_ended`. The
 * run of a revoked child goes on, because it belongs to the agent at the top. Decision 0853 gives the reasons.
 */
export async function revokedError(
  { ancestorIds }: NamedRunAgent,
  runId: string | null,
  agentById: (id: number) => NamedRunAgent | null | Promise<NamedRunAgent | null>,
): Promise<GatewayError> {
  const top = ancestorIds.at(-1)
  const isEnded = runId !== null && (top === undefined || (await agentById(top))?.status === 'revoked')
  return isEnded ? runEndedError(runId) : fail('agent_revoked_label')
}

/** Adds the id of the run to an error, unless it has it. Other values are returned unchanged. */
export function withRunId(error: unknown, runId: string): unknown {
  // One reason may cut calls of several runs.
  if (error instanceof CallCutError) return new CallCutError(error.reason, runId)
  if (!(error instanceof GatewayError) || error.options.headers?.[brHeader.runId] !== undefined) return error
  return fail(error.errorName, { ...error.options, message: error.message, headers: { ...error.options.headers, [brHeader.runId]: runId } })
}
