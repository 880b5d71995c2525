/** How many tokens a messages request would have: asked of the provider where it speaks the format, reckoned here everywhere else. */
import { type Call, type Reply, reply } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { BearerPrincipal, Principal } from '../../platform/principal.ts'
import type { Dialect } from '../providers/dialect.ts'
import { dialectOf } from '../providers/dialects.ts'
import type { Attempt, Plan } from '../routing/plan.ts'
import { brHeader } from '../wire/response-headers.ts'
import { decodedReply } from './decoded-reply.ts'
import type { InferenceDeps } from './deps.ts'
import { parseMessages } from './kinds/messages.ts'
import type { CallInput, ParsedRequest } from './kinds/request.ts'
import { relayedHeaders } from './refusals.ts'
import { send } from './send.ts'

/** Largest reply that is read. */
const replyMaxBytes = 1024 * 1024

/** Errors that a count has in common with the call that it is made for. Everything else that keeps a model from being called does not keep its prompt from being counted here. */
const refusals: ReadonlySet<string> = new Set(['model_not_found', 'model_not_allowed', 'byok_required'])

/**
 * Counts. Nothing is held and nothing is charged. A reply of the provider goes back as it is, an error too; a count of ours says so in
 * `x-br-estimate`. Throws `bad_request`, `model_not_found`, `model_not_allowed`, `byok_required`, `all_routes_failed`.
 */
export async function countTokens(input: CallInput, call: Call<Principal>, deps: InferenceDeps): Promise<Reply> {
  const principal = bearer(call.principal)
  const request = parseMessages(input)
  const plan = await planOf(request, principal, deps)
  const attempts = plan?.attempts.filter(({ route }) => route.dialect === request.native.format) ?? []
  const [first] = attempts
  const count = first && dialectOf(first.route.dialect).count
  // Only what the call itself would be served by: a later route that speaks the format is another model's, or another provider's.
  if (first === undefined || count === undefined || first !== plan?.attempts[0])
    return reply.json({ input_tokens: request.promptTokens }, 200, { [brHeader.estimate]: 'true' })
  deps.recheck(principal)
  const overflow = attempts.find(({ afterRateLimit, route }) => afterRateLimit && route.provider.id === first.route.provider.id)
  const answer = await ask(request, first, count, call, deps)
  return answer.status === 429 && overflow !== undefined ? ask(request, overflow, count, call, deps) : answer
}

function bearer(principal: Principal): BearerPrincipal {
  if (principal.kind === 'session') throw fail('invalid_api_key')
  return principal
}

/** Where the call would go; null where it could not be made now, which is no reason not to count. */
async function planOf(request: ParsedRequest, principal: BearerPrincipal, deps: InferenceDeps): Promise<Plan | null> {
  const org = await deps.orgRouting(principal.orgId)
  try {
    return deps.resolve({
      modelId: request.modelId,
      kind: 'chat',
      fields: request.fields,
      org,
      policies: principal.policies,
      promptTokens: request.promptTokens,
      needs: request.needs,
      forwards: request.forwarded !== null,
      overflows: request.overflows === true,
      promptText: () => request.promptText(),
    })
  } catch (error) {
    if (!(error instanceof GatewayError) || refusals.has(error.errorName)) throw error
    return null
  }
}

async function ask(request: ParsedRequest, attempt: Attempt, count: NonNullable<Dialect['count']>, call: Call<Principal>, deps: InferenceDeps): Promise<Reply> {
  const { route, model, credential } = attempt
  const target = {
    provider: route.provider,
    upstreamModel: route.upstreamModel,
    credential,
    forwarded: attempt.forwarded === true ? request.forwarded : null,
    traits: model,
  }
  const headers = { [brHeader.provider]: route.provider.id }
  try {
    const answer = decodedReply(await send(attempt, count({ ...request.native, stream: false }, target), call.signal, deps))
    const bytes = await answer.body.buffer(replyMaxBytes)
    return reply.bytes(bytes, { 'content-type': 'application/json; charset=utf-8', ...relayedHeaders(answer.headers), ...headers }, answer.status)
  } catch (error) {
    if (call.signal.aborted) throw call.signal.reason
    throw fail('all_routes_failed', { message: `${route.provider.id} could not be reached to count the tokens.`, cause: error, headers })
  }
}
