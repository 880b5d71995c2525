/** The headers with which every reply of a call of a run says what the run has cost and what its caps leave. */
import { inrTextOf } from '../../../../platform/values/money.ts'
import { brHeader } from '../../../wire/response-headers.ts'

/** What the caps of the run of a call leave, as its permit knows it. Null means that there is no such cap. */
export interface RunLeft {
  /** What the run had cost before the call. */
  readonly runSpentUinr: bigint | null
  readonly runRemainingUinr: bigint | null
  readonly runCallsRemaining: bigint | null
}

/** Adds the headers of a run. Headers of caps that the run does not have are left out. */
export function noteRun(headers: Record<string, string>, runId: string, { runSpentUinr, runRemainingUinr, runCallsRemaining }: RunLeft): void {
  headers[brHeader.runId] = runId
  if (runSpentUinr !== null) headers[brHeader.runCostInr] = inrTextOf(runSpentUinr)
  if (runRemainingUinr !== null) headers[brHeader.runRemainingInr] = inrTextOf(runRemainingUinr)
  if (runCallsRemaining !== null) headers[brHeader.runCallsRemaining] = String(runCallsRemaining)
}
