import { DatabaseUnavailableError } from '../../platform/db/db.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { CallCutError } from '../../platform/loop/inflight.ts'

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

/** Returns the error for a call that the gateway itself ended before anything was sent. */
export function cutError(cut: CallCutError): GatewayError {
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
    case 'tool_withdrawn':
      return fail('tool_server_unavailable', {
        message: 'This tool was withdrawn while its call ran: somebody blocked it, or switched its server off.',
        extra: { reason: 'tool_withdrawn' },
      })
    case 'shutdown':
      return fail('shutting_down')
  }
}
