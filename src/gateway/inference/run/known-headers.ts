/** The headers that every reply after admission has, also errors. */
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { Meter } from '../charge/meter.ts'
import { noteLeft } from './left-headers.ts'

/** Adds the headers that every reply after admission has. */
export const noteKnown = (headers: Record<string, string>, { left, runId }: Meter): void => noteLeft(headers, left, runId)

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
