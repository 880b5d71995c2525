import { z } from 'zod'
import { pieceTurn } from '../../../gateway/wire/json/json-body.ts'
import { isBoundedInTurns, operatorBounds } from '../../../gateway/wire/json/json-bounds.ts'
import { JsonSlices } from '../../../gateway/wire/json/json-slices.ts'
import { Reply } from '../../../platform/endpoint.ts'
import { type ErrorType, fail, GatewayError } from '../../../platform/errors.ts'
import { oneLine, quoted } from '../memory/text/tool-memory-marking.ts'
import { inToolWords } from '../memory/text/tool-memory-words.ts'
import { jsonOf, plainJson, type ToolResult } from './tool.ts'

/** The key in `_meta` of a failed call under which programs find the error. It is the same on every installation. */
export const errorMetaKey = 'dev.brigade/error'

/** A refusal by a provider that the gateway relays unchanged. It has the provider's status and code, and no entry in the gateway's error table. */
export class RelayedRefusal extends Error {
  override readonly name = 'RelayedRefusal'
  readonly code: string
  readonly status: number
  readonly type: string
  constructor(code: string, status: number, message: string, type: string) {
    super(message)
    this.code = code
    this.status = status
    this.type = type
  }
}

const envelope = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.string().nullish(), type: z.string().nullish() }) })
const relayedType: ErrorType = 'invalid_request_error'

/**
 * Returns a provider's name for an error if it is a single word. Longer texts are dropped, because text of a provider must not look like text of the
 * gateway.
 */
function word(said: string | null | undefined): string | null {
  return typeof said === 'string' && /^[\w.:-]{1,64}$/.test(said) ? said : null
}

/** Throws the provider's refusal when the value of a row is a refusal. */
export function refuseRelayed(value: unknown): void {
  if (!(value instanceof Reply) || value.status < 400) return
  const { error } = envelope.parse(jsonOf(value))
  throw new RelayedRefusal(word(error.code) ?? 'upstream_client_error', value.status, error.message, word(error.type) ?? relayedType)
}

/**
 * Returns the provider's answer. Throws the refusal if the answer is one. Throws `all_routes_failed` for an answer of another shape, because the
 * provider failed and not the gateway.
 */
export function providerAnswer<T>(shape: z.ZodType<T>, value: unknown): T {
  refuseRelayed(value)
  const parsed = shape.safeParse(jsonOf(value))
  if (parsed.success) return parsed.data
  throw fail('all_routes_failed', { message: 'The provider answered in a form that cannot be read.', cause: parsed.error })
}

/** An answer of more bytes is parsed in turns of the event loop. */
const lightAnswerBytes = 1024 * 1024

/** Returns the provider's answer as `providerAnswer` does. A long one is first compared with the bounds and then parsed, in turns of the event loop. */
export async function providerAnswerInTurns<T>(shape: z.ZodType<T>, value: unknown, bounds = operatorBounds): Promise<T> {
  refuseRelayed(value)
  if (!(value instanceof Reply) || value.body.kind !== 'bytes' || value.body.bytes.byteLength <= lightAnswerBytes) return providerAnswer(shape, value)
  const { buffer, byteOffset, byteLength } = value.body.bytes
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  if (!(await isBoundedInTurns(bytes, bounds))) throw unreadable(`an answer of more than ${bounds.valuesMax} values`)
  const slices = new JsonSlices(bytes)
  try {
    do await pieceTurn()
    while (!slices.next())
  } catch (error) {
    throw error instanceof SyntaxError ? unreadable('JSON that cannot be read') : error
  }
  return providerAnswer(shape, slices.value)
}

const unreadable = (what: string): GatewayError => fail('all_routes_failed', { message: `The provider answered with ${what}.` })

/** An answer that ended with an error frame. The error contains the part that arrived. */
export class BrokenAnswer extends Error {
  override readonly name = 'BrokenAnswer'
  readonly error: GatewayError
  constructor(error: GatewayError) {
    super(error.message, { cause: error })
    this.error = error
  }
}

/** What an agent should do after an error, by code. Agents repeat failed calls, so the text says plainly when a retry cannot help. */
const nextSteps: Readonly<Record<string, string>> = {
  bad_request: 'Correct the arguments and call again.',
  bad_name: 'Choose another name, as the message says.',
  bad_memory_key: 'Use a relative path such as agents/<name>/notes.md; memory_paths lists the scopes.',
  byok_required: "Do not retry with this model: it needs the organisation's own provider key. Choose another model with models_list.",
  call_cap_exceeded: 'Send a smaller prompt or max_tokens, or choose a cheaper model: one call may not cost or produce that much.',
  forbidden: 'Do not retry: this credential may not do that. memory_paths and whoami say what it may do.',
  insufficient_credits: 'Do not retry: tell the user that the prepaid balance is used up.',
  invalid_api_key: 'Do not retry with this credential: tell the user that it no longer works.',
  internal_error: 'Do not retry immediately: tell the user the request id. It finds the failure in the log of the gateway.',
  key_disabled_inactive: 'Do not retry: tell the user that the key was disabled for lack of use.',
  memory_conflict: 'Read the object again with memory_read, merge your change, and write with the new etag as if_match.',
  memory_store_failed: 'If this was a write, read the object first: it may have come through. If it stays, tell the user: an admin has to look at the store.',
  memory_not_configured: 'Do not retry: an admin has to configure a memory store first.',
  memory_quota_exceeded: 'Delete what is no longer needed with memory_delete, or ask an admin for a larger quota.',
  model_gated: 'Choose another model with models_list.',
  model_not_allowed: 'Choose another model: this credential may not use that one.',
  model_not_found: 'Call models_list for the model ids.',
  no_route: 'Relax provider, data_policy or exclude, or choose another model.',
  not_found: 'Check the name; memory_list shows the keys that exist.',
  payload_too_large: 'Split it into smaller parts.',
  provider_unavailable_billing: 'Do not retry: the operator of the gateway has to act. Another model may work.',
  all_routes_failed: 'Try again, or choose another model.',
  agent_paused: 'Do not retry: this agent is paused. Stop this work and tell the user; whoever paused it resumes it.',
  run_ended: 'Do not retry: somebody ended this run. Stop this work and tell the user.',
  run_required: 'Name the run of the call: send x-br-run-id, or br.run in the baggage of the request.',
  agent_revoked: 'Do not retry: this agent has been revoked permanently. Stop this work and tell the user.',
  upstream_stream_error: 'The answer is incomplete. Try again.',
  upstream_client_error: 'The provider refused the request as it is: change it, or choose another model.',
  share_owner: 'Do not retry: the owner cannot be taken out. Retire the share instead, if the user wants that.',
  space_retired: 'Choose another name: that one is not used again.',
  space_taken: 'Choose another name, or ask the owner of that space to let you in.',
  tool_not_found: 'Find the name with tools_search.',
  unsupported_operation: 'Choose another model with models_list.',
}

const spentBudget =
  'Do not retry: the budget does not come back by waiting. Stop this work and tell the user; budget_get shows the figures, and budget_request asks for more.'
const heldTime = 'Do not retry: stop this work and tell the user, who can raise the cap of the run. It then continues.'
const toRaise = 'Do not retry: stop this work and tell the user, who can raise the cap of the run. budget_request asks for it. The run then continues.'
/** The caps of a run, which no waiting ends. */
const heldRun: Readonly<Record<string, string>> = {
  run_budget_exceeded: toRaise,
  run_calls_exceeded: toRaise,
  run_time_exceeded: heldTime,
  run_loop_detected: 'Do not retry: you repeat the same call. Do something else, or stop and tell the user.',
  run_subagents_exceeded: 'Do not begin another sub-agent. Go on with those that this run has.',
}
const afterTime = (seconds: string): string => `Wait ${seconds} s and try again.`

/** Returns the next step. The budget codes have two meanings: the budget of the month is spent, or running calls hold the rest of it for a moment. */
function nextStepOf(error: GatewayError | RelayedRefusal, headers: Readonly<Record<string, string>>): string {
  const retryAfter = headers['retry-after']
  const isBudget = error.code === 'budget_exceeded' || error.code === 'agent_budget_exceeded'
  if (error.code in heldRun) return heldRun[error.code] as string
  if (isBudget && headers['x-should-retry'] === 'false') return spentBudget
  if (error.code === 'daily_limit_reached') return 'Do not retry before midnight IST: the daily limit is reached.'
  if (isBudget || error.status === 429) return afterTime(retryAfter ?? '5')
  if (retryAfter !== undefined) return afterTime(retryAfter)
  return nextSteps[error.code] ?? (error.status >= 500 ? 'Try again later; if it stays, report the request id.' : 'Change the call before you try again.')
}

/** Maximum number of characters of a message. Some messages repeat the refused input, and some are written by others. Both may be long. */
const messageCharsMax = 2_000

/**
 * Replaces `Next:` in a message. Agents follow the text after this mark, so only text of the gateway may use it. Messages may repeat text of
 * providers and callers.
 */
const withoutOurMark = (text: string): string => text.replace(/\bnext\s*:/giu, 'next -')

/** Fields of the evidence that programs also read in `_meta`. */
const budgetFields = ['scope', 'run_id', 'cap', 'spent', 'held', 'cap_inr', 'spent_inr', 'held_inr', 'in_doubt_inr', 'resets_at'] as const

/**
 * Returns the result of a failed tool. Its text for the model is "code: message Next: …". Its structured data are code, message, status and evidence.
 * `errorMetaKey` in `_meta` contains what a program needs to decide: type, code, status, whether and when to retry, and the exceeded budget.
 */
export function toolError(error: GatewayError | RelayedRefusal, requestId: string): ToolResult {
  const headers: Readonly<Record<string, string>> = error instanceof GatewayError ? error.toHeaders() : {}
  const next = nextStepOf(error, headers)
  const evidence = objectOf(plainJson(error instanceof GatewayError ? (error.options.extra ?? {}) : {}))
  const retryAfter = headers['retry-after']
  const shouldRetry = headers['x-should-retry']
  const again = {
    ...(retryAfter === undefined || shouldRetry === 'false' ? {} : { retry_after_s: Number(retryAfter) }),
    ...(shouldRetry === undefined ? {} : { should_retry: shouldRetry === 'true' }),
  }
  const { code, status, type } = error
  const message = withoutOurMark(oneLine(inToolWords(error.message), messageCharsMax))
  const said = error instanceof RelayedRefusal ? `The provider says ${quoted(message, messageCharsMax)}.` : message
  return {
    text: `${code}: ${said} Next: ${next}`,
    structured: { ...evidence, code, message, status, next, ...again, request_id: requestId },
    meta: {
      [errorMetaKey]: {
        type,
        code,
        status,
        ...again,
        ...Object.fromEntries(budgetFields.filter(name => evidence[name] !== undefined).map(name => [name, evidence[name]])),
        request_id: requestId,
      },
    },
  }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> => (typeof value === 'object' && value !== null ? { ...value } : {})
