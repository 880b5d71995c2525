import { fail, GatewayError } from '../../../platform/errors.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { Outcome } from '../../usage/events/record.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'

/** How a failed call ends: what the caller gets, what its usage event says, and whether the failure counts against the circuit of the server. */
export interface ToolFailure {
  readonly error: unknown
  readonly outcome: Outcome
  readonly status: number
  readonly isOfServer: boolean
}

/** The status of a caller who has left. */
const leftStatus = 499

/** Returns how a call ends that `thrown` has ended. `maxResultBytes` is the bound of results. */
export function toolFailure(thrown: unknown, maxResultBytes: number): ToolFailure {
  if (thrown instanceof CallCutError) return ended(thrown)
  if (!(thrown instanceof UpstreamError)) {
    const status = thrown instanceof GatewayError ? thrown.status : 500
    return { error: thrown, outcome: 'failed', status, isOfServer: false }
  }
  if (thrown.kind === 'cancelled') return ended(thrown.facts.reason)
  const error = errorOf(thrown, maxResultBytes)
  const isOfServer = thrown.kind === 'unavailable' || thrown.kind === 'timeout' || thrown.kind === 'protocol'
  return { error, outcome: 'failed', status: error.status, isOfServer }
}

function ended(reason: unknown): ToolFailure {
  if (!(reason instanceof CallCutError)) return { error: reason, outcome: 'client_gone', status: leftStatus, isOfServer: false }
  const isRevoked = reason.reason === 'agent_revoked' || reason.reason === 'key_revoked' || reason.reason === 'token_revoked'
  return {
    error: reason,
    outcome: 'cut',
    status: isRevoked ? 401 : reason.reason === 'agent_paused' || reason.reason === 'run_ended' ? 403 : 503,
    isOfServer: false,
  }
}

/** Returns the error for the caller. It says whose fault it is, and contains text of the server only where the server answered an error of the protocol. */
function errorOf({ kind, facts, isSent }: UpstreamError, maxResultBytes: number): GatewayError {
  const charged = isSent ? 'The call was sent and counts.' : 'Nothing was sent to it, and nothing is charged.'
  switch (kind) {
    case 'unauthorized':
      return fail('tool_server_failed', {
        message: `The server of this tool refused its own credential (${facts.status}). An admin of the organisation can change it. ${charged}`,
      })
    case 'blocked_address':
      return fail('tool_server_failed', { message: `The address of the server of this tool is not public, so it is not dialed. ${charged}` })
    case 'unavailable': {
      const wait = facts.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: facts.retryAfterSeconds }
      const said = facts.status === undefined ? 'could not be reached' : `answered ${facts.status}`
      return fail('tool_server_unavailable', { message: `The server of this tool ${said}. ${charged}`, ...wait })
    }
    case 'timeout':
      return fail('tool_timeout', { message: `The server of this tool gave no whole answer in its time. ${charged}` })
    case 'too_large': {
      const { sizeBytes, valuesMax } = facts
      const why = valuesMax === undefined ? `at least ${sizeBytes} bytes, and at most ${maxResultBytes} are accepted` : `more than ${valuesMax} values`
      return fail('tool_result_too_large', {
        message: `The result of this tool has ${why}. Nothing of it is passed on. ${charged}`,
        extra: { size_bytes: sizeBytes, ...(valuesMax === undefined ? { limit_bytes: maxResultBytes } : { limit_values: valuesMax }) },
      })
    }
    case 'rpc':
      return fail('tool_server_failed', {
        message: `The server of this tool answered with an error (${facts.rpcCode}). ${charged}`,
        extra: { server_code: facts.rpcCode, server_message: facts.rpcMessage },
      })
    default:
      return fail('tool_server_failed', { message: `The server of this tool did not answer as the protocol says. ${charged}` })
  }
}
