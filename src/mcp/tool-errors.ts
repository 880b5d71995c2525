import type { GatewayError } from '../platform/errors.ts'
import { plainJson, type ToolResult } from './tool.ts'

/** A refusal by a provider that the gateway relays as it is: its own status and code, no row of the error table. */
export class RelayedRefusal extends Error {
  override readonly name = 'RelayedRefusal'
  readonly code: string
  readonly status: number
  constructor(code: string, status: number, message: string) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** An answer that ended with an error frame; the error carries what had come of it. */
export class BrokenAnswer extends Error {
  override readonly name = 'BrokenAnswer'
  readonly error: GatewayError
  constructor(error: GatewayError) {
    super(error.message, { cause: error })
    this.error = error
  }
}

/** What an agent should do after an error, by code. Agents loop on failures, so the answer says plainly when a retry cannot help. */
const nextSteps: Readonly<Record<string, string>> = {
  bad_request: 'Correct the arguments and call again.',
  bad_memory_key: 'Use a relative path such as agents/<name>/notes.md; memory_paths lists the scopes.',
  byok_required: "Do not retry with this model: it needs the organisation's own provider key. Choose another model with models_list.",
  forbidden: 'Do not retry: this credential may not do that. memory_paths and whoami say what it may do.',
  insufficient_credits: 'Do not retry: tell the user that the prepaid balance is used up.',
  invalid_api_key: 'Do not retry with this credential: tell the user that it no longer works.',
  memory_conflict: 'Read the object again with memory_read, merge your change, and write with the new etag as if_match.',
  memory_not_configured: 'Do not retry: an admin has to configure a memory store first.',
  memory_quota_exceeded: 'Delete what is no longer needed with memory_delete, or ask an admin for a larger quota.',
  model_gated: 'Choose another model with models_list.',
  model_not_allowed: 'Choose another model: this credential may not use that one.',
  model_not_found: 'Call models_list for the model ids.',
  no_route: 'Relax provider, data_policy or exclude, or choose another model.',
  not_found: 'Check the name; memory_list shows the keys that exist.',
  payload_too_large: 'Split it into smaller parts.',
  provider_unavailable_billing: 'Do not retry: the operator of the gateway has to act. Another model may work.',
  all_routes_failed: 'Try once more, or choose another model.',
  agent_revoked: 'Do not retry: this agent has been revoked for good. Stop this work and tell the user.',
  upstream_stream_error: 'The answer is incomplete. Try once more.',
  upstream_client_error: 'The provider refused the request as it is: change it, or choose another model.',
  unsupported_operation: 'Choose another model with models_list.',
}

const spentBudget = 'Do not retry: the budget does not come back by waiting. Stop this work and tell the user; budget_get shows the figures.'
const afterTime = (seconds: string): string => `Wait ${seconds} s and try again.`

/** The budget codes stand for two cases: spent for the month, or held by running calls for a moment. */
function nextStepOf(error: GatewayError | RelayedRefusal, headers: Readonly<Record<string, string>>): string {
  const retryAfter = headers['retry-after']
  const isBudget = error.code === 'budget_exceeded' || error.code === 'agent_budget_exceeded'
  if (isBudget && headers['x-should-retry'] === 'false') return spentBudget
  if (error.code === 'daily_limit_reached') return 'Do not retry before midnight IST: the daily limit of the key is reached.'
  if (isBudget || error.status === 429) return afterTime(retryAfter ?? '5')
  if (retryAfter !== undefined) return afterTime(retryAfter)
  return nextSteps[error.code] ?? (error.status >= 500 ? 'Try again later; if it stays, report the request id.' : 'Change the call before you try again.')
}

/** The result of a failed tool: text "code: message Next: …" for the model, code, message, status and evidence as data. */
export function toolError(error: GatewayError | RelayedRefusal, requestId: string): ToolResult {
  const headers: Readonly<Record<string, string>> = error instanceof RelayedRefusal ? {} : error.toHeaders()
  const next = nextStepOf(error, headers)
  const evidence = plainJson(error instanceof RelayedRefusal ? {} : (error.options.extra ?? {}))
  const retryAfter = headers['retry-after']
  return {
    text: `${error.code}: ${error.message} Next: ${next}`,
    structured: {
      ...(typeof evidence === 'object' && evidence !== null ? evidence : {}),
      code: error.code,
      message: error.message,
      status: error.status,
      next,
      ...(retryAfter === undefined || headers['x-should-retry'] === 'false' ? {} : { retry_after_s: Number(retryAfter) }),
      ...(headers['x-should-retry'] === undefined ? {} : { should_retry: headers['x-should-retry'] === 'true' }),
      request_id: requestId,
    },
  }
}
