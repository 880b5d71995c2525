import { type ErrorName, errorTable } from '../../../platform/errors.ts'
import type { CallCutError } from '../../../platform/loop/inflight.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'

/** The reason for which the gateway ends a stream before the provider does. */
export type StreamEnd = { readonly name: ErrorName; readonly message?: string }

/** Returns the end of a stream after a revocation, a pause, a stale control log, a lost database or a shutdown. */
export function endOfCut(cut: CallCutError): StreamEnd {
  switch (cut.reason) {
    case 'agent_revoked':
      return { name: 'agent_revoked', message: 'This agent has been revoked.' }
    case 'agent_paused':
      return { name: 'agent_paused', message: 'This agent has been paused.' }
    case 'run_ended':
      return { name: 'run_ended', message: 'This run was ended.' }
    case 'key_revoked':
      return { name: 'invalid_api_key', message: 'This key has been revoked.' }
    case 'token_revoked':
      return { name: 'invalid_api_key', message: 'This agent token has been revoked.' }
    case 'agent_stale':
      return { name: 'database_unavailable', message: 'The gateway cannot confirm that this agent is still active.' }
    case 'database_away':
      return { name: 'database_unavailable', message: 'The gateway has been without its database for too long to go on.' }
    // No call of a model ends for a reason of tools.
    case 'tool_blocked':
    case 'tool_server_off':
    case 'tool_server_changed':
    case 'tool_connection_ended':
    case 'tools_stale':
    case 'shutdown':
      return { name: 'shutting_down' }
  }
}

/**
 * Returns the end as it is written in a stream. An end because of a budget has the type `billing_error`, because some clients retry a
 * `rate_limit_error` inside a stream immediately.
 */
export function faultOf(end: StreamEnd): StreamFault {
  const entry = errorTable[end.name]
  const type = end.name === 'agent_revoked' ? 'authentication_error' : entry.status === 429 ? 'billing_error' : entry.type
  return { message: end.message ?? entry.message, type, code: entry.code }
}
