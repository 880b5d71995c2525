import { inrTextOf } from '../../../platform/values/money.ts'
import type { Permit } from '../../limits/engine/admission.ts'
import { noteRun } from '../../usage/runs/entry/run-headers.ts'
import { brHeader } from '../../wire/response-headers.ts'

/** Adds the headers of every reply after admission: the agent's remaining budget, the run of the call and what its caps leave. */
export function noteLeft(
  headers: Record<string, string>,
  left: Pick<Permit, 'agentRemainingUinr' | 'runSpentUinr' | 'runRemainingUinr' | 'runCallsRemaining'>,
  runId: string | null,
): void {
  const { agentRemainingUinr } = left
  if (agentRemainingUinr !== null) headers[brHeader.budgetRemainingInr] = inrTextOf(agentRemainingUinr)
  if (runId !== null) noteRun(headers, runId, left)
}
