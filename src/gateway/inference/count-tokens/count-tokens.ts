/** Counts the tokens of a request. A provider that speaks the format is asked; everywhere else the gateway estimates. */
import { type Call, type Reply, reply } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { BearerPrincipal, CallPolicy, Principal } from '../../../platform/security/principal.ts'
import type { Dialect } from '../../providers/dialect.ts'
import { dialectOf } from '../../providers/dialects.ts'
import { resolveAsPaid } from '../../routing/payer.ts'
import type { Attempt, Plan, ResolveRequest } from '../../routing/plan.ts'
import type { ClientFormat } from '../../wire/client-format.ts'
import { exactNumbersOf } from '../../wire/json/json-body.ts'
import { objectOfBytes } from '../../wire/json/json-bounds.ts'
import { brHeader } from '../../wire/response-headers.ts'
import { clientErrorReply, readRefusal, relayedHeaders } from '../attempt/refusals.ts'
import { send } from '../attempt/send.ts'
import { withoutNativeWithheld } from '../attempt/withheld.ts'
import { writtenInTurns } from '../attempt/written-slices.ts'
import type { InferenceDeps } from '../deps.ts'
import { type CallInput, type ParsedRequest, routedTokensOf } from '../kinds/request.ts'
import { bearer, chargedAgent, inTurnOf, parsedInTurns } from '../pipeline.ts'
import type { ClientError, Failed } from '../replies/answer.ts'
import { decodedReply } from '../replies/decoded-reply.ts'

/** The largest reply that is read, in bytes. */
const replyMaxBytes = 1024 * 1024

/** How one client format asks for a count, and gets it. */
export interface CountStyle {
  readonly format: ClientFormat
  /** The member of the reply that has the count, here and at a provider of the format. */
  readonly name: 'input_tokens' | 'totalTokens'
  parse(input: CallInput): ParsedRequest
}

/** The errors that a count throws like the call itself. With any other error of routing the prompt can still be counted here. */
const refusals: ReadonlySet<string> = new Set(['model_not_found', 'model_not_allowed', 'byok_required'])

/**
 * Returns the token count of a request. Nothing is held and nothing is charged.
 *
 * On the caller's own credential the provider's reply is relayed, also when it is an error. On the platform's credential the caller gets only
 * the count and the provider's refusals of the request itself, because the state of the platform's account stays private. After any other
 * failure the gateway's own estimate answers. The estimate also answers while the database cannot record where the prompt goes. An estimate has
 * the header `x-br-estimate`.
 *
 * Throws `bad_request`, `model_not_found`, `model_not_allowed`, `byok_required`, `agent_revoked_label`, `all_routes_failed`.
 */
export async function countTokens(style: CountStyle, input: CallInput, call: Call<Principal>, base: InferenceDeps): Promise<Reply> {
  const principal = bearer(call.principal)
  const inTurn = inTurnOf(input, call, base)
  const request = inTurn === undefined ? style.parse(input) : await parsedInTurns(input.bytes, inTurn, () => style.parse(input))
  const deps = { ...base, inTurn, exact: exactNumbersOf(input.bytes) }
  const { policies } = await chargedAgent(principal, call.agentLabel, deps)
  const plan = await planOf(request, principal, policies, deps)
  const attempts = plan?.attempts.filter(({ route }) => route.dialect === request.native.format) ?? []
  const [first] = attempts
  const dialect = first && dialectOf(first.route.dialect)
  const count = first !== undefined && dialect?.mayCount?.(first.route.provider) === false ? undefined : dialect?.count
  // Only the first route of the call is asked. A later route that speaks the format belongs to another model or provider.
  if (first === undefined || count === undefined || first !== plan?.attempts[0]) return estimateOf(request, style)
  const overflow = attempts.find(({ afterRateLimit, route }) => afterRateLimit && route.provider.id === first.route.provider.id)
  const asked = { style, request, count }
  const answer = await ask(asked, first, call, deps)
  return answer.status === 429 && overflow !== undefined ? ask(asked, overflow, call, deps) : answer
}

const estimateOf = (request: ParsedRequest, { name }: CountStyle): Reply =>
  reply.json({ [name]: routedTokensOf(request) }, 200, { [brHeader.estimate]: 'true' })

/** A request whose tokens a provider counts. */
interface Asked {
  readonly style: CountStyle
  readonly request: ParsedRequest
  readonly count: NonNullable<Dialect['count']>
}

/** Returns the plan of the call. Null when the call could not be made now, because the prompt can be counted anyway. */
async function planOf(request: ParsedRequest, principal: BearerPrincipal, policies: readonly CallPolicy[], deps: InferenceDeps): Promise<Plan | null> {
  const org = await deps.orgRouting(principal.orgId)
  try {
    const wanted: ResolveRequest = {
      modelId: request.modelId,
      kind: 'chat',
      fields: request.fields,
      org,
      policies,
      promptTokens: routedTokensOf(request),
      needs: request.needs,
      forwards: request.forwarded !== null,
      overflows: request.overflows === true,
      promptText: () => request.promptText(),
    }
    return resolveAsPaid(principal.isTrial, wanted, deps.resolve)
  } catch (error) {
    if (!(error instanceof GatewayError) || refusals.has(error.errorName)) throw error
    return null
  }
}

async function ask({ style, request, count }: Asked, attempt: Attempt, call: Call<Principal>, deps: InferenceDeps): Promise<Reply> {
  const { route, model, credential } = attempt
  const target = {
    provider: route.provider,
    upstreamModel: route.upstreamModel,
    credential,
    forwarded: attempt.forwarded === true ? request.forwarded : null,
    traits: model,
    ...(deps.inTurn === undefined ? {} : { writesLater: true }),
  }
  const headers = { [brHeader.provider]: route.provider.id }
  try {
    await deps.noteTokenCount(call.principal.orgId, route)
  } catch {
    return estimateOf(request, style)
  }
  deps.recheck(bearer(call.principal))
  try {
    const write = () => count({ ...withoutNativeWithheld(request.native, attempt).native, stream: false }, target)
    const { inTurn, exact } = deps
    const outgoing = inTurn === undefined ? write() : await writtenInTurns(write, exact !== undefined, work => inTurn(work, call.signal))
    const answer = decodedReply(await send(attempt, outgoing, call.signal, deps))
    if (answer.status < 200 || answer.status >= 300) return refusedCount(await readRefusal(answer, attempt, dialectOf(route.dialect), request), request, style)
    const bytes = await answer.body.buffer(replyMaxBytes)
    if (attempt.byok) return reply.bytes(bytes, { 'content-type': 'application/json; charset=utf-8', ...relayedHeaders(answer.headers), ...headers })
    const tokens = countIn(bytes, style.name)
    return tokens === null ? estimateOf(request, style) : reply.json({ [style.name]: tokens }, 200, headers)
  } catch (error) {
    if (call.signal.aborted) throw call.signal.reason
    if (!attempt.byok) return estimateOf(request, style)
    throw fail('all_routes_failed', { message: `${route.provider.id} could not be reached to count the tokens.`, cause: error, headers })
  }
}

/** Returns the provider's refusal when it is meant for the caller, or else the estimate. A failure of the platform stays private. */
function refusedCount(refusal: ClientError | Failed, request: ParsedRequest, style: CountStyle): Reply {
  const claimed = refusal.kind === 'client-error' ? refusal : (refusal.relayed ?? refusal.refusal)
  return claimed === undefined ? estimateOf(request, style) : clientErrorReply(claimed, style.format)
}

function countIn(bytes: Buffer, name: CountStyle['name']): number | null {
  const tokens = objectOfBytes(bytes)?.[name]
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null
}
