/**
 * The table of every error that a client can see.
 *
 * The key of an entry is a name that only the code uses, because one wire code can have several statuses (`no_route` is 400, 404 or 422). The entry
 * contains what is sent. `fail(name)` makes the exception, and the HTTP and MCP edges turn it into a reply. docs/reference/errors.md, the OpenAPI responses
 * and a test that pins the errors use this table.
 */

/** `error.type` as the OpenAI and Anthropic SDKs know it. */
export type ErrorType =
  | 'invalid_request_error'
  | 'not_found_error'
  | 'authentication_error'
  | 'billing_error'
  | 'permission_error'
  | 'rate_limit_error'
  | 'api_error'

interface ErrorEntry {
  readonly code: string
  readonly status: number
  readonly type: ErrorType
  /** The default message. It says what the caller can do. */
  readonly message: string
  /** 'ours' when the interface does not define the error. Decision 0082 explains these entries. */
  readonly source: 'interface' | 'ours'
  /** Is sent as `x-should-retry`, so that SDKs retry only when that can help. */
  readonly shouldRetry?: boolean
}

const invalid = 'invalid_request_error'

// biome-ignore format: a table reads by rows
export const errorTable = {
  // 401
  invalid_api_key: { code: 'invalid_api_key', status: 401, type: 'authentication_error', source: 'interface', message: 'Missing, malformed, revoked or expired credential. Send "Authorization: Bearer <API key or agent token>".' },
  key_disabled_inactive: { code: 'key_disabled_inactive', status: 401, type: 'authentication_error', source: 'interface', message: 'This key was disabled after a long time without use. An owner or admin can enable it again.' },
  no_session: { code: 'no_session', status: 401, type: 'authentication_error', source: 'interface', message: 'Sign in first, at /auth: this endpoint takes the session cookie br_session and no API key.' },
  byok_required: { code: 'byok_required', status: 401, type: 'authentication_error', source: 'ours', message: 'This model runs on your own provider credential only. Save one or forward it in Authorization.' },
  // 402, 403
  insufficient_credits: { code: 'insufficient_credits', status: 402, type: 'billing_error', source: 'interface', message: 'The prepaid balance of the organisation is used up. An owner can top up with POST /me/billing/orders. Calls on your own provider key need no balance.', shouldRetry: false },
  /** The balance is not used up, but holds of running calls take all of the rest. The caller can retry later. */
  credits_held: { code: 'insufficient_credits', status: 402, type: 'billing_error', source: 'ours', message: 'What is left of the prepaid balance is held by running calls. Try again shortly, or top up.', shouldRetry: true },
  forbidden: { code: 'forbidden', status: 403, type: 'permission_error', source: 'interface', message: 'This credential may not do that.' },
  tool_connection_required: { code: 'tool_connection_required', status: 403, type: 'permission_error', source: 'ours', message: 'The server of this tool takes the token of the person behind the call, and that person has no connection with it.', shouldRetry: false },
  agent_paused: { code: 'agent_paused', status: 403, type: 'permission_error', source: 'ours', message: 'This agent is paused, and its calls are refused. The agent cannot resume itself. The person who paused it can resume it with POST /v1/me/agents/{id}/resume.' },
  run_ended: { code: 'run_ended', status: 403, type: 'permission_error', source: 'ours', message: 'This run was ended, and its calls are refused. Begin a new run with another id.', shouldRetry: false },
  agent_revoked_label: { code: 'agent_revoked', status: 403, type: 'permission_error', source: 'ours', message: 'The agent named in x-br-agent-id is revoked.' },
  foreign_origin: { code: 'forbidden', status: 403, type: 'permission_error', source: 'ours', message: 'The Origin or Host of this request is not allowed here.' },
  model_gated: { code: 'model_gated', status: 403, type: 'permission_error', source: 'interface', message: 'This model needs a data-retention window, which is off for this organisation.' },
  model_not_allowed: { code: 'model_not_allowed', status: 403, type: 'permission_error', source: 'ours', message: 'This credential may not use that model or provider.' },
  call_cap_exceeded: { code: 'call_cap_exceeded', status: 403, type: 'permission_error', source: 'ours', message: 'This call may cost or produce more than its key or agent is allowed. Send a smaller max_tokens or prompt.' },
  // 404, 405
  not_found: { code: 'not_found', status: 404, type: 'not_found_error', source: 'interface', message: 'The resource does not exist.' },
  method_not_allowed: { code: 'method_not_allowed', status: 405, type: invalid, source: 'ours', message: 'This path does not take that method; see the Allow header.' },
  model_not_found: { code: 'model_not_found', status: 404, type: 'not_found_error', source: 'interface', message: 'Unknown model id. GET /v1/models lists the ids.' },
  model_not_found_media: { code: 'model_not_found', status: 400, type: invalid, source: 'interface', message: 'Unknown model id. GET /v1/models lists the ids.' },
  no_route_virtual: { code: 'no_route', status: 404, type: 'not_found_error', source: 'interface', message: 'No reachable model satisfies this preset.' },
  memory_not_configured: { code: 'memory_not_configured', status: 404, type: 'not_found_error', source: 'interface', message: 'No memory store is configured. An admin sets one with PUT /v1/me/memory-store.' },
  unknown_provider: { code: 'unknown_provider', status: 404, type: 'not_found_error', source: 'interface', message: 'There is no provider with that id. GET /v1/providers lists the ids.' },
  tool_not_found: { code: 'tool_not_found', status: 404, type: 'not_found_error', source: 'ours', message: 'This credential may call no tool of that name. GET /v1/tools lists those that it may call.' },
  // 400, 409, 412, 413, 415, 422
  bad_request: { code: 'bad_request', status: 400, type: invalid, source: 'interface', message: 'The request is not well formed.' },
  bad_name: { code: 'bad_name', status: 400, type: invalid, source: 'interface', message: 'The name is empty, too long or has control characters.' },
  bad_readme: { code: 'bad_readme', status: 400, type: invalid, source: 'interface', message: 'The readme is too long or has control characters. It takes Markdown of at most 64 KiB.' },
  bad_steps: { code: 'bad_steps', status: 400, type: invalid, source: 'interface', message: 'The chain steps are not valid: 1 to 10 steps, each a model id or {model, provider?}.' },
  bad_memory_key: { code: 'bad_memory_key', status: 400, type: invalid, source: 'ours', message: 'Not a valid memory key: relative path, no "..", no empty segment, no control character.' },
  bad_model: { code: 'bad_model', status: 400, type: invalid, source: 'interface', message: 'The catalog has no model with that id. GET /v1/models lists the ids.' },
  bad_key: { code: 'bad_key', status: 400, type: invalid, source: 'interface', message: 'That does not look like a key of this provider, or the provider refused it.' },
  trial_ceiling: { code: 'trial_ceiling', status: 400, type: invalid, source: 'interface', message: 'A trial key cannot be raised above the trial ceiling. Top up first.' },
  bad_email: { code: 'bad_email', status: 400, type: invalid, source: 'interface', message: 'The e-mail address is not valid.' },
  bad_role: { code: 'bad_role', status: 400, type: invalid, source: 'interface', message: 'The role must be member, admin or owner. Only an owner can give the role owner.' },
  already_member: { code: 'already_member', status: 400, type: invalid, source: 'interface', message: 'That person is a member already.' },
  already_invited: { code: 'already_invited', status: 400, type: invalid, source: 'interface', message: 'That address has an open invitation already.' },
  last_owner: { code: 'last_owner', status: 400, type: invalid, source: 'interface', message: 'An organisation keeps at least one owner. Make somebody else owner first.' },
  personal_org: { code: 'personal_org', status: 400, type: invalid, source: 'interface', message: 'A personal organisation has one member. Make a team organisation with POST /me/orgs.' },
  team_cap: { code: 'team_cap', status: 400, type: invalid, source: 'interface', message: 'You have reached the limit of team organisations for one person.' },
  member_cap: { code: 'member_cap', status: 400, type: invalid, source: 'interface', message: 'The organisation is full: members and open invitations count together.' },
  duplicate_workspace: { code: 'duplicate_workspace', status: 400, type: invalid, source: 'interface', message: 'A workspace with that name already exists.' },
  run_required: { code: 'run_required', status: 400, type: invalid, source: 'ours', message: 'The calls of this key or agent must name their run. Send x-br-run-id with the id of the job.', shouldRetry: false },
  cap: { code: 'cap', status: 400, type: invalid, source: 'interface', message: 'The organisation has reached its limit for this resource. Remove one first.' },
  duplicate_key_name: { code: 'duplicate_key_name', status: 400, type: invalid, source: 'interface', message: 'An active key with that name already exists.' },
  no_route: { code: 'no_route', status: 400, type: invalid, source: 'interface', message: 'No eligible route serves this model. No provider was called.' },
  no_route_residency: { code: 'no_route', status: 422, type: invalid, source: 'interface', message: 'A hard constraint (data_policy or exclude) leaves no route. No provider was called.' },
  unavailable: { code: 'unavailable', status: 400, type: invalid, source: 'interface', message: 'The service that this request needs cannot be reached or is not configured.' },
  unsupported_operation: { code: 'unsupported_operation', status: 400, type: invalid, source: 'ours', message: 'This model does not support this operation.' },
  unsupported_grant_type: { code: 'unsupported_grant_type', status: 400, type: invalid, source: 'ours', message: 'The only grant type here is urn:ietf:params:oauth:grant-type:token-exchange.' },
  unsupported_token_type: { code: 'unsupported_token_type', status: 400, type: invalid, source: 'ours', message: 'This endpoint revokes only agent tokens. Revoke an API key with DELETE /me/keys/{id}.' },
  invalid_target: { code: 'invalid_target', status: 400, type: invalid, source: 'ours', message: 'No token is issued for that resource or audience. Leave both out, or name the base URL of this gateway.' },
  invalid_scope: { code: 'invalid_scope', status: 400, type: invalid, source: 'ours', message: 'The scope is unknown, or wider than this exchange can give. A token exchange can only narrow a scope.' },
  agent_revoked: { code: 'agent_revoked', status: 409, type: invalid, source: 'ours', message: 'This agent is revoked. Create a new one.' },
  store_path_change_in_use: { code: 'store_path_change_in_use', status: 409, type: invalid, source: 'interface', message: 'The store holds memory, and Brigade does not migrate it. To change the path anyway, send confirm_path_change: true.' },
  agent_name_taken: { code: 'agent_name_taken', status: 409, type: invalid, source: 'ours', message: 'Another active agent of the organisation has that name. Choose another one.' },
  budget_request_open: { code: 'budget_request_open', status: 409, type: invalid, source: 'ours', message: 'Somebody has asked for this already, and the request is open. Read it with GET /v1/me/budget-requests.', shouldRetry: false },
  budget_request_decided: { code: 'budget_request_decided', status: 409, type: invalid, source: 'ours', message: 'This request is decided or has expired.', shouldRetry: false },
  budget_not_available: { code: 'budget_not_available', status: 409, type: invalid, source: 'ours', message: "The budget does not fit into what the parent has left." },
  memory_conflict: { code: 'memory_conflict', status: 412, type: invalid, source: 'ours', message: 'The object changed since you read it. Read it again and repeat the write.' },
  memory_busy: { code: 'memory_conflict', status: 409, type: invalid, source: 'ours', message: 'Another writer holds this key. Try again.', shouldRetry: true },
  space_taken: { code: 'space_taken', status: 409, type: invalid, source: 'ours', message: 'Another person owns a share with that name. Choose another name, or ask its owner for a grant.' },
  space_retired: { code: 'space_retired', status: 409, type: invalid, source: 'ours', message: 'A share of that name was retired, and its name is never used again. Choose another name.' },
  share_owner: { code: 'share_owner', status: 400, type: invalid, source: 'ours', message: 'The owner of a share cannot be revoked. Retire the share to close it.' },
  tool_slug_taken: { code: 'tool_slug_taken', status: 409, type: invalid, source: 'ours', message: 'The organisation uses this slug, or a deleted server had it. A slug is never used again. Choose another one.' },
  tool_changed: { code: 'tool_changed', status: 409, type: invalid, source: 'ours', message: 'The server shows another definition now. Read it with GET /me/tool-servers/{id}/tools/{tool}, and approve that hash.', shouldRetry: false },
  tool_not_approvable: { code: 'tool_not_approvable', status: 409, type: invalid, source: 'ours', message: 'The definition has characters that a person cannot see, so nobody can approve it. The server must change it.', shouldRetry: false },
  idempotency_mismatch: { code: 'idempotency_mismatch', status: 422, type: invalid, source: 'ours', message: 'This Idempotency-Key was used with another body or endpoint. Use a new key for a new call.', shouldRetry: false },
  idempotency_replayed: { code: 'idempotency_replayed', status: 409, type: invalid, source: 'ours', message: 'The call with this Idempotency-Key was made and charged once; its reply is not kept. The body of this error has its usage.', shouldRetry: false },
  idempotency_in_progress: { code: 'idempotency_in_progress', status: 409, type: invalid, source: 'ours', message: 'The call with this Idempotency-Key still runs. Try again shortly.', shouldRetry: true },
  memory_quota_exceeded: { code: 'memory_quota_exceeded', status: 413, type: invalid, source: 'ours', message: 'The memory quota is used up. Delete something, or let an admin raise quota_mb.' },
  payload_too_large: { code: 'payload_too_large', status: 413, type: invalid, source: 'ours', message: 'The body is larger than this endpoint takes.' },
  unsupported_media_type: { code: 'unsupported_media_type', status: 415, type: invalid, source: 'ours', message: 'This endpoint does not accept this content-type.' },
  not_acceptable: { code: 'bad_request', status: 406, type: invalid, source: 'ours', message: 'The Accept header must allow the content-type that this endpoint sends.' },
  // 429
  rate_limit_exceeded: { code: 'rate_limit_exceeded', status: 429, type: 'rate_limit_error', source: 'interface', message: 'Too many requests in this minute.' },
  concurrency_limit_reached: { code: 'concurrency_limit_reached', status: 429, type: 'rate_limit_error', source: 'ours', message: 'This key or agent has reached its limit of concurrent calls. Wait for a call to end.', shouldRetry: true },
  org_limit_reached: { code: 'org_limit_reached', status: 409, type: 'invalid_request_error', source: 'ours', message: 'The organisation has reached its limit for this resource. Remove one, or ask the operator for a higher limit.', shouldRetry: false },
  daily_limit_reached: { code: 'daily_limit_reached', status: 429, type: 'rate_limit_error', source: 'interface', message: "The key's daily limit is reached. It resets at midnight IST.", shouldRetry: false },
  trial_limit_reached: { code: 'daily_limit_reached', status: 429, type: 'rate_limit_error', source: 'ours', message: 'The trial keys of this organisation have made all of their free calls of this day together. It resets at midnight IST. Top up to end the trial, or use your own provider key.', shouldRetry: false },
  budget_exceeded: { code: 'budget_exceeded', status: 429, type: 'rate_limit_error', source: 'interface', message: 'The budget is spent.', shouldRetry: false },
  agent_budget_exceeded: { code: 'agent_budget_exceeded', status: 429, type: 'rate_limit_error', source: 'interface', message: "The agent's budget is spent. Do not retry: ask its owner for more, with POST /v1/me/budget-requests (MCP tool budget_request).", shouldRetry: false },
  /** The budget is not used up, but holds of running calls take all of the rest. The caller can retry later. */
  budget_held: { code: 'budget_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: 'What is left of the budget is held by running calls. Try again shortly.' },
  agent_budget_held: { code: 'agent_budget_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: "What is left of the agent's budget is held by its running calls. Try again shortly." },
  run_budget_exceeded: { code: 'run_budget_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: 'The cap on the cost of this run is reached. Do not retry: its owner can raise the cap, and the run then continues. You can ask for more with POST /v1/me/budget-requests (MCP tool budget_request).', shouldRetry: false },
  run_calls_exceeded: { code: 'run_calls_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: 'The cap on the calls of this run is reached. Do not retry: its owner can raise the cap, and the run then continues. You can ask for more with POST /v1/me/budget-requests (MCP tool budget_request).', shouldRetry: false },
  run_time_exceeded: { code: 'run_time_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: 'The time of this run is over. Do not retry: its owner can raise the cap, and the run then continues.', shouldRetry: false },
  run_loop_detected: { code: 'run_loop_detected', status: 429, type: 'rate_limit_error', source: 'ours', message: 'This run repeats itself, and its rule stops that. Do not retry: do something else, or stop.', shouldRetry: false },
  run_subagents_exceeded: { code: 'run_subagents_exceeded', status: 429, type: 'rate_limit_error', source: 'ours', message: 'This run may have no further sub-agent, or none as deep in its family. Do not retry: the sub-agents that it has can go on.', shouldRetry: false },
  address_required: { code: 'address_required', status: 400, type: invalid, source: 'interface', message: 'A billing address is needed before the first top-up. Set one with POST /me/billing/address.' },
  bad_address: { code: 'bad_address', status: 400, type: invalid, source: 'interface', message: 'The billing address is not valid.' },
  promo_invalid: { code: 'promo_invalid', status: 400, type: invalid, source: 'interface', message: 'There is no such promo code, or it has expired or is used up.' },
  promo_redeemed: { code: 'promo_redeemed', status: 400, type: invalid, source: 'interface', message: 'This organisation has redeemed that promo code already.' },
  bad_signature: { code: 'bad_signature', status: 400, type: invalid, source: 'ours', message: 'The signature does not match this content. Nothing was credited.' },
  // 5xx
  billing_disabled: { code: 'billing_disabled', status: 503, type: 'api_error', source: 'interface', message: 'Payments are not configured here. The operator sets the key id and secret of the payment provider.', shouldRetry: false },
  payment_provider_failed: { code: 'payment_provider_failed', status: 502, type: 'api_error', source: 'ours', message: 'The payment provider did not answer as it should. Nothing was charged. Try again shortly.', shouldRetry: true },
  provider_not_configured: { code: 'provider_not_configured', status: 503, type: 'api_error', source: 'interface', message: 'This way to sign in is not configured here. The operator sets its client id and secret.', shouldRetry: false },
  byok_disabled: { code: 'byok_disabled', status: 503, type: 'api_error', source: 'interface', message: 'Own provider keys are switched off here.', shouldRetry: false },
  internal_error: { code: 'internal_error', status: 500, type: 'api_error', source: 'ours', message: 'Something went wrong on our side. Search the log for the x-request-id.' },
  all_routes_failed: { code: 'all_routes_failed', status: 502, type: 'api_error', source: 'interface', message: 'Every route was tried and failed.' },
  reply_too_large: { code: 'upstream_reply_too_large', status: 502, type: 'api_error', source: 'ours', message: 'The reply of the provider is larger than this gateway accepts. The call was made and is charged. Ask for less in one call: fewer inputs or answers, or no logprobs.', shouldRetry: false },
  reply_not_translated: { code: 'upstream_reply_not_translated', status: 502, type: 'api_error', source: 'ours', message: 'The reply of the provider cannot be written in the format of this endpoint. The call was made and is charged. Ask for the model on an endpoint of its own format, or simplify the tools.', shouldRetry: false },
  tool_server_failed: { code: 'tool_server_failed', status: 502, type: 'api_error', source: 'ours', message: 'The server of this tool did not answer as it should.', shouldRetry: false },
  tool_result_too_large: { code: 'tool_result_too_large', status: 502, type: 'api_error', source: 'ours', message: 'The result of this tool is larger than this gateway accepts. Ask for less.', shouldRetry: false },
  tool_server_unavailable: { code: 'tool_server_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'The server of this tool cannot be reached. Other tools work.', shouldRetry: true },
  tool_timeout: { code: 'tool_timeout', status: 504, type: 'api_error', source: 'ours', message: 'The server of this tool gave no whole answer in its time.', shouldRetry: false },
  memory_store_failed: { code: 'memory_store_failed', status: 502, type: 'api_error', source: 'ours', message: 'The memory store did not answer as it should. Nothing was changed.' },
  memory_store_busy: { code: 'memory_store_failed', status: 503, type: 'api_error', source: 'ours', message: 'The memory store is overloaded. Nothing was changed. Try again shortly.', shouldRetry: true },
  provider_unavailable_billing: { code: 'provider_unavailable_billing', status: 503, type: 'api_error', source: 'interface', message: 'The provider refused this gateway on billing grounds. The operator has to act; waiting does not help.' },
  database_unavailable: { code: 'database_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'The gateway cannot reach its database. Try again shortly.', shouldRetry: true },
  shutting_down: { code: 'database_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'This gateway process is shutting down. Try again.', shouldRetry: true },
  bodies_refused: { code: 'temporarily_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'This process has no room for another request body. Try again shortly.', shouldRetry: true },
  replies_refused: { code: 'temporarily_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'This process has no room for another reply of a provider. Try again shortly.', shouldRetry: true },
  places_taken: { code: 'temporarily_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'This process has reached one of its limits on open requests. Try again shortly.', shouldRetry: true },
  issuer_unavailable: { code: 'temporarily_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'The gateway could not fetch the keys of the token issuer. Try again shortly.', shouldRetry: true },
  journal_full: { code: 'database_unavailable', status: 503, type: 'api_error', source: 'ours', message: 'The usage journal cannot take more records. The operator has to act.', shouldRetry: true },
  /** Occurs only inside a running stream, never as an HTTP status. */
  upstream_stream_error: { code: 'upstream_stream_error', status: 502, type: 'api_error', source: 'ours', message: 'The provider broke off the stream.' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorName = keyof typeof errorTable

/**
 * The errors that a call and its preview can return before a hold is made and before a provider is called. `insufficient_credits` is the error for a trial
 * key.
 */
export const planningErrors: readonly ErrorName[] = [
  'bad_request',
  'bad_steps',
  'model_not_found',
  'model_not_allowed',
  'model_gated',
  'byok_required',
  'no_route',
  'no_route_virtual',
  'no_route_residency',
  'agent_revoked_label',
  'agent_paused',
  'insufficient_credits',
]

export interface FailOptions {
  /** Public text instead of the entry's message. It must not contain a secret or text of a user. */
  readonly message?: string
  /** Internal cause, for the log only. */
  readonly cause?: unknown
  /** Fields of the body in addition to `error`, for example the budget figures of a 429. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** True for the error of a call that has a usage event, because a provider was asked. It is not counted as a refusal. */
  readonly hasEvent?: boolean
  /** Seconds for `retry-after`; rounded up, at least 1. Absent when a retry is useless. */
  readonly retryAfterSeconds?: number
  /** Overrides the entry's `shouldRetry`. */
  readonly shouldRetry?: boolean
  /** More reply headers, for example `allow`, `www-authenticate`, `x-br-provider`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Longest message in characters. A message may quote what a caller has sent, which can have millions. */
const messageMaxChars = 4000

const boundedMessage = (message: string): string => (message.length <= messageMaxChars ? message : `${message.slice(0, messageMaxChars)}…`)

/** An error that a client may see. Everything else that is thrown becomes `internal_error`. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: string
  readonly status: number
  readonly type: ErrorType
  readonly errorName: ErrorName
  readonly options: FailOptions

  constructor(errorName: ErrorName, options: FailOptions = {}) {
    const entry: ErrorEntry = errorTable[errorName]
    super(boundedMessage(options.message ?? entry.message), options.cause === undefined ? undefined : { cause: options.cause })
    this.errorName = errorName
    this.code = entry.code
    this.status = entry.status
    this.type = entry.type
    this.options = options
  }

  /** Returns the body that is sent: `{error:{message,type,code}, …evidence}`. */
  toBody(): { error: { message: string; type: string; code: string } } & Record<string, unknown> {
    return { ...this.options.extra, error: { message: this.message, type: this.type, code: this.code } }
  }

  /** Returns `retry-after`, `x-should-retry` and the thrower's headers. Every 429 has a `retry-after`. */
  toHeaders(): Record<string, string> {
    const entry: ErrorEntry = errorTable[this.errorName]
    const headers: Record<string, string> = { ...this.options.headers }
    const seconds = this.options.retryAfterSeconds ?? (this.status === 429 || this.code === 'database_unavailable' ? 1 : undefined)
    if (seconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(seconds)))
    const shouldRetry = this.options.shouldRetry ?? entry.shouldRetry
    if (shouldRetry !== undefined) headers['x-should-retry'] = String(shouldRetry)
    return headers
  }
}

/** Makes the error with this name: `throw fail('not_found')`. */
export function fail(errorName: ErrorName, options?: FailOptions): GatewayError {
  return new GatewayError(errorName, options)
}

/**
 * Turns any thrown value into an error that a client may see. A GatewayError stays as it is. Everything else becomes `internal_error` and
 * keeps the cause for the log.
 */
export function toGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError ? thrown : fail('internal_error', { cause: thrown })
}
