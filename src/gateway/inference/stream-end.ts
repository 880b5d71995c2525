import { type ErrorName, errorTable } from '../../platform/errors.ts'
import type { CallCutError } from '../../platform/inflight.ts'
import { dataFrame, doneFrame } from '../wire/sse.ts'
import type { TokenUsage } from '../wire/usage.ts'

/** Why the gateway ends a stream before the provider does. */
export type StreamEnd = { readonly name: ErrorName; readonly message?: string }

/** The end that a revoke, a stale control log or a shutdown puts to a stream. */
export function endOfCut(cut: CallCutError): StreamEnd {
  switch (cut.reason) {
    case 'agent_revoked':
      return { name: 'agent_revoked', message: 'This agent has been revoked.' }
    case 'key_revoked':
      return { name: 'invalid_api_key', message: 'This key has been revoked.' }
    case 'agent_stale':
      return { name: 'database_unavailable', message: 'The gateway cannot confirm that this agent is still active.' }
    case 'database_away':
      return { name: 'database_unavailable', message: 'The gateway has been without its database for too long to go on.' }
    case 'shutdown':
      return { name: 'shutting_down' }
  }
}

/**
 * The last frames of a chat stream that did not end well: an error object with the usage so far, then the end mark. No finish_reason
 * goes before it, which clients would read as success. Budget ends are `billing_error` here: inside a stream some clients retry
 * `rate_limit_error` at once.
 */
export function chatEndFrames(end: StreamEnd, usage: TokenUsage, terminate: boolean): Buffer {
  const entry = errorTable[end.name]
  const type = end.name === 'agent_revoked' ? 'authentication_error' : entry.status === 429 ? 'billing_error' : entry.type
  const frame = {
    error: { message: end.message ?? entry.message, type, code: entry.code, param: null },
    usage: { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens, total_tokens: usage.promptTokens + usage.completionTokens },
  }
  return Buffer.from(`${terminate ? '\n\n' : ''}${dataFrame(frame)}${doneFrame}`)
}
