/**
 * Enforces the caps on the cost and output of one call that the owners of its key and agent have set. The plan decides, before the hold and
 * before any dial. Decision 0136 gives the reasons.
 */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { CallPolicy } from '../../../platform/security/principal.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { Plan } from '../../routing/plan.ts'
import { plainUsage } from '../../wire/usage.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { promptTokensMost } from '../prompt-most.ts'
import { firstHoldTokens, heldUsage, holdOf, lastAnswerTokens, outputCeiling } from './estimate.ts'
import { outputTokensFor } from './price.ts'
import { thinksBesideLimit } from './thinks-unseen.ts'

/**
 * Returns the request within the caps. A prompt above a limit of tokens a minute is refused, because no minute has room for it. A request with `max_tokens` is unchanged or refused. A request without it gets as `max_tokens` the most
 * that every cap and the models' own limits allow. Throws `call_cap_exceeded`.
 */
export function withinCallCaps(kind: Kind, request: ParsedRequest, plan: Plan, policies: readonly CallPolicy[]): ParsedRequest {
  for (const policy of policies)
    if (typeof policy.tpmLimit === 'number' && request.promptTokens > policy.tpmLimit) throw tooLarge(policy, policy.tpmLimit, request)
  if (!policies.some(policy => policy.maxOutputTokens !== null || policy.maxCostUinr !== null)) return request
  const isOpen = kind.hasOutput && request.maxTokens === null
  const bounded = isOpen ? withMaxTokens(request, tokensLeft(request, plan, policies)) : request
  const { worstUinr } = holdOf(kind, bounded, plan)
  for (const policy of policies) {
    const { maxOutputTokens, maxCostUinr } = policy
    if (kind.hasOutput && maxOutputTokens !== null && bounded.maxTokens !== null && bounded.maxTokens > maxOutputTokens)
      throw tooLong(policy, maxOutputTokens, bounded)
    if (maxCostUinr !== null && worstUinr > maxCostUinr) throw tooDear(policy, maxCostUinr, kind, bounded, plan)
  }
  return bounded
}

/** Returns the output tokens of the whole call that the tightest cap leaves, at most what every model of the plan can write. Null when no cap bounds them. */
function tokensLeft(request: ParsedRequest, plan: Plan, policies: readonly CallPolicy[]): number | null {
  let least = Number.MAX_SAFE_INTEGER
  for (const { maxOutputTokens, maxCostUinr } of policies) {
    if (maxOutputTokens !== null) least = Math.min(least, maxOutputTokens)
    if (maxCostUinr !== null) least = Math.min(least, tokensFor(maxCostUinr, request, plan))
  }
  if (least === Number.MAX_SAFE_INTEGER) return null
  for (const { model } of plan.attempts) if (model.maxOutputTokens !== null) least = Math.min(least, model.maxOutputTokens * request.answers)
  return least
}

/**
 * Returns the request within the hold of its caller's strict budgets. A request without `max_tokens` gets the most output that the hold covers,
 * so that no answer exceeds a budget. `heldUinr` is null without a strict budget. Decision 0463 gives the reasons.
 */
export function withinStrictHold(kind: Kind, request: ParsedRequest, plan: Plan, heldUinr: bigint | null): ParsedRequest {
  if (heldUinr === null || !kind.hasOutput || request.maxTokens !== null) return request
  const ceilings = plan.attempts.map(attempt => outputCeiling(request, attempt))
  return withMaxTokens(request, Math.min(tokensFor(heldUinr, request, plan), ...ceilings))
}

/**
 * Returns the request within what is left of the prepaid balance for a last call. Its limit of output tokens is at most what is
 * left, or else a short answer. Nothing that the request says makes the short answer longer. It makes at most as many pictures as the rest pays for,
 * or else one. `leftUinr` is null when the balance covers the hold. Decision 0502 gives the reasons.
 */
export function withinBalance(kind: Kind, request: ParsedRequest, plan: Plan, leftUinr: bigint | null): ParsedRequest {
  if (leftUinr === null) return request
  const debited = plan.attempts.filter(({ byok }) => !byok)
  if (!kind.hasOutput) return withinImages(kind, request, { ...plan, attempts: debited }, leftUinr)
  const ceilings = debited.map(attempt => outputCeiling(request, attempt))
  const leastTokens = Math.max(...debited.map(({ model }) => lastAnswerTokens(model)))
  const mostTokens = Math.max(leastTokens, tokensFor(leftUinr, request, { attempts: debited }))
  // The balance refuses the extensions of a stream, so only its first hold can be too large.
  const longest = request.stream ? debited.map(attempt => firstHoldTokens(kind, request, attempt)) : ceilings
  if (longest.every(tokens => tokens <= mostTokens)) return request
  // A limit of the request is never raised. Where thinking comes beside it, the ceilings are above it.
  const most = Math.min(mostTokens, request.maxTokens ?? Number.POSITIVE_INFINITY, ...ceilings)
  return most === request.maxTokens ? request : withMaxTokens(request, most)
}

/** Returns the request with the most pictures that the amount pays for, at least one. Other requests are unchanged. */
function withinImages(kind: Kind, request: ParsedRequest, plan: Plan, leftUinr: bigint): ParsedRequest {
  let bound = request
  for (let images = (request.media?.images ?? 0) - 1; images >= 1; images--) {
    bound = request.withImages?.(images) ?? request
    if (holdOf(kind, bound, plan).worstUinr <= leftUinr) break
  }
  return bound
}

/** Returns the output tokens that an amount pays for after the prompt, on the dearest attempt. */
function tokensFor(amountUinr: bigint, request: ParsedRequest, { attempts }: Pick<Plan, 'attempts'>): number {
  return Math.min(
    ...attempts.map(attempt => {
      const { price } = attempt.route
      return outputTokensFor(amountUinr, price, heldUsage(plainUsage(promptTokensMost(request, attempt), 0), request, price))
    }),
  )
}

/** Sets a token limit, at least one token for each answer. When even that is too much, the caller's next check refuses the call. */
function withMaxTokens(request: ParsedRequest, tokens: number | null): ParsedRequest {
  return tokens === null ? request : request.withMaxTokens(Math.max(1, Math.floor(tokens / request.answers)))
}

function tooLarge({ owner }: CallPolicy, cap: number, { promptTokens }: ParsedRequest): GatewayError {
  return fail('call_cap_exceeded', {
    message: `This ${owner} may use at most ${cap} tokens a minute (tpm_limit), and the prompt of this call has about ${promptTokens}. No minute has room for it: send a shorter prompt. No provider was called.`,
    extra: { scope: owner, tpm_limit: cap, prompt_tokens: promptTokens },
  })
}

function tooLong({ owner }: CallPolicy, cap: number, request: ParsedRequest): GatewayError {
  const answers = request.answers
  const send = answers <= cap ? `max_tokens of at most ${Math.floor(cap / answers)}` : `n of at most ${cap}`
  const each = answers > 1 ? ` for ${answers} answers` : ''
  return fail('call_cap_exceeded', {
    message: `This ${owner} may have at most ${cap} output tokens in one call (max_output_tokens); this call asks for ${request.maxTokens}. Send ${send}${each}, or leave it out. No provider was called.`,
    extra: { scope: owner, max_output_tokens: cap },
  })
}

function tooDear({ owner }: CallPolicy, cap: bigint, kind: Kind, request: ParsedRequest, plan: Plan): GatewayError {
  // A lower limit does not help where thinking comes beside it.
  const isBound = kind.hasOutput && !plan.attempts.some(attempt => thinksBesideLimit(request, attempt))
  const fits = isBound ? Math.floor(tokensFor(cap, request, plan) / request.answers) : 0
  const send = fits >= 1 ? `Send max_tokens of at most ${fits}, a shorter prompt, or a cheaper model.` : 'Send less input, or choose a cheaper model.'
  return fail('call_cap_exceeded', {
    message: `One call of this ${owner} may cost at most ₹${inrFromUinr(cap)} (max_cost_inr_per_call); this one could cost ₹${inrFromUinr(holdOf(kind, request, plan).worstUinr)} on its dearest route. ${send} No provider was called.`,
    extra: { scope: owner, max_cost_inr_per_call: inrFromUinr(cap) },
  })
}
