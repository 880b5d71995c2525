/** The headers that every reply after admission has, also errors. */
import { fail, GatewayError } from '../../../platform/errors.ts'
import { inrTextOf } from '../../../platform/values/money.ts'
import { noteRun } from '../../usage/runs/entry/run-headers.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { Meter } from '../charge/meter.ts'

/** Adds the headers that every reply after admission has: the agent's remaining budget, the run of the call and what its caps leave. */
export function noteKnown(headers: Record<string, string>, meter: Meter): void {
  const left = meter.left.agentRemainingUinr
  if (left !== null) headers[brHeader.budgetRemainingInr] = inrTextOf(left)
  if (meter.runId !== null) noteRun(headers, meter.runId, meter.left)
}

/** Returns these headers for replies without the other x-br-* headers. */
export function knownOf(meter: Meter): Record<string, string> {
  const headers: Record<string, string> = {}
  noteKnown(headers, meter)
  return headers
}

/** Adds these headers to an error after admission, as to its replies, and says whether the call has an event. */
export function withKnown(error: unknown, meter: Meter): unknown {
  if (!(error instanceof GatewayError) || (meter.left.agentRemainingUinr === null && meter.runId === null && !meter.dialed)) return error
  const headers = { ...error.options.headers, ...knownOf(meter) }
  return fail(error.errorName, { ...error.options, message: error.message, headers, hasEvent: meter.dialed })
}
