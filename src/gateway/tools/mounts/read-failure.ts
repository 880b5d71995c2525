import { fail, type GatewayError } from '../../../platform/errors.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'

/** How a failed read ends: what the caller gets, and whether the failure counts against the circuit of the server. */
export interface ReadFailure {
  readonly error: unknown
  readonly isOfServer: boolean
}

/** The codes with which servers say that a resource or prompt does not exist, or that a cursor is not theirs. */
const notThereCodes = new Set([-32002, -32602])

/** Returns how a read ends that `thrown` has ended. `maxResultBytes` is the bound of results. */
export function readFailure(thrown: unknown, maxResultBytes: number): ReadFailure {
  if (!(thrown instanceof UpstreamError)) return { error: thrown, isOfServer: false }
  if (thrown.kind === 'cancelled') return { error: thrown.facts.reason, isOfServer: false }
  const isOfServer = thrown.kind === 'unavailable' || thrown.kind === 'timeout' || thrown.kind === 'protocol'
  return { error: errorOf(thrown, maxResultBytes), isOfServer }
}

/** Returns the error for the caller. It contains text of the server only where the server answered with an error of the protocol. */
function errorOf({ kind, facts }: UpstreamError, maxResultBytes: number): GatewayError {
  switch (kind) {
    case 'unauthorized':
      return fail('tool_server_failed', { message: `The MCP server refused its own credential (${facts.status}). An admin of the organisation can change it.` })
    case 'blocked_address':
      return fail('tool_server_failed', { message: 'The address of the MCP server is not public, so it is not dialed.' })
    case 'unavailable': {
      const wait = facts.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: facts.retryAfterSeconds }
      return fail('tool_server_unavailable', {
        message: `The MCP server ${facts.status === undefined ? 'could not be reached' : `answered ${facts.status}`}.`,
        ...wait,
      })
    }
    case 'timeout':
      return fail('tool_timeout', { message: 'The MCP server gave no whole answer in its time.' })
    case 'too_large':
      return fail('tool_result_too_large', {
        message: `The answer of the MCP server has at least ${facts.sizeBytes} bytes, and at most ${maxResultBytes} are accepted. Nothing of it is passed on.`,
        extra: { size_bytes: facts.sizeBytes, limit_bytes: maxResultBytes },
      })
    case 'rpc':
      if (facts.rpcCode !== undefined && notThereCodes.has(facts.rpcCode)) return fail('not_found', { message: 'The MCP server has nothing of that name.' })
      return fail('tool_server_failed', {
        message: `The MCP server answered with an error (${facts.rpcCode}).`,
        extra: { server_code: facts.rpcCode, server_message: facts.rpcMessage },
      })
    default:
      return fail('tool_server_failed', { message: 'The MCP server did not answer as the protocol says.' })
  }
}
