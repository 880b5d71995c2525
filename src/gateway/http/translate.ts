import { DatabaseUnavailableError } from '../../platform/db/db.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { CallCutError } from '../../platform/loop/inflight.ts'
import { brHeader } from '../wire/response-headers.ts'

/** Returns the error of the error table for a known failure, and every other failure unchanged. */
export function translate(thrown: unknown): unknown {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof DatabaseUnavailableError) return fail('database_unavailable', { cause: thrown, retryAfterSeconds: 2 })
  if (thrown instanceof CallCutError) return cutError(thrown)
  if (isTooDeep(thrown)) return fail('bad_request', { message: 'The body is nested too deeply.', cause: thrown })
  return thrown
}

/** A deeply nested value can be parsed, but writing, measuring and checking it are recursive, so its depth can exceed the stack. */
const isTooDeep = (thrown: unknown): boolean => thrown instanceof RangeError && thrown.message === 'Maximum call stack size exceeded'

/** Returns the error for a call that the gateway itself ended before anything was sent. A call of a run has the id of its run. */
export function cutError(cut: CallCutError): GatewayError {
  const error = errorOfCut(cut)
  const { runId } = cut
  if (runId === null) return error
  const extra = cut.reason === 'run_ended' ? { scope: 'run', run_id: runId } : error.options.extra
  return fail(error.errorName, {
    ...error.options,
    message: error.message,
    headers: { ...error.options.headers, [brHeader.runId]: runId },
    ...(extra === undefined ? {} : { extra }),
  })
}

function errorOfCut(cut: CallCutError): GatewayError {
  switch (cut.reason) {
    case 'agent_revoked':
      return fail('invalid_api_key', { message: 'This agent has been revoked. Stop: its tokens work no more.', extra: { reason: 'agent_revoked' } })
    case 'agent_paused':
      return fail('agent_paused')
    case 'run_ended':
      return fail('run_ended')
    case 'key_revoked':
      return fail('invalid_api_key', { message: 'This key has been revoked.' })
    case 'token_revoked':
      return fail('invalid_api_key', { message: 'This agent token has been revoked.', extra: { reason: 'token_revoked' } })
    case 'agent_stale':
      return fail('database_unavailable', { message: 'The gateway cannot confirm that this agent is still active. Try again shortly.', retryAfterSeconds: 2 })
    case 'database_away':
      return fail('database_unavailable', { retryAfterSeconds: 2 })
    case 'tool_blocked':
      return fail('tool_server_unavailable', { message: 'Somebody blocked this tool while its call ran.', extra: { reason: 'tool_blocked' } })
    case 'tool_server_off':
      return fail('tool_server_unavailable', {
        message: 'Somebody switched the server of this tool off, or removed it, while the call ran.',
        extra: { reason: 'tool_server_off' },
      })
    case 'tool_server_changed':
      return fail('tool_server_unavailable', {
        message: 'Somebody replaced or removed the address or the credential of the server of this tool while the call ran.',
        extra: { reason: 'tool_server_changed' },
      })
    case 'tool_connection_ended':
      return fail('tool_server_unavailable', {
        message: 'The connection with the server of this tool ended while the call ran.',
        extra: { reason: 'tool_connection_ended' },
      })
    case 'tools_stale':
      return fail('database_unavailable', {
        message: 'The gateway cannot confirm that this tool may still be called. Try again shortly.',
        retryAfterSeconds: 2,
        extra: { reason: 'tools_stale' },
      })
    case 'shutdown':
      return fail('shutting_down')
  }
}
