/**
 * The most that one call may cost or produce, as the owners of its key and agent have ruled. Decided from the plan, before money is held
 * and before anything is dialed. Decision 0136 says why.
 */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { CallPolicy } from '../../../platform/security/principal.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { Plan } from '../../routing/plan.ts'
import { plainUsage } from '../../wire/usage.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { promptTokensMost } from '../prompt-most.ts'
import { heldUsage, holdOf, outputCeiling, outputTokensFor } from './estimate.ts'

/**
 * The request as the caps allow it. A request that says how much it wants is taken as it is or refused; one that does not gets the
 * most that every cap and the models' own ceilings leave as its `max_tokens`. Throws `call_cap_exceeded`.
 */
export function withinCallCaps(kind: Kind, request: ParsedRequest, plan: Plan, policies: readonly CallPolicy[]): ParsedRequest {
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

/** Output tokens of the whole call that the tightest cap leaves, at most what a model on the plan can write. Null: nothing bounds them. */
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
 * The request within what the strict budgets of its caller hold for it: one that names no `max_tokens` gets the most that is held, so that no answer goes
 * past a cap. `heldUinr` is null without a strict budget. Decision 0463 says why.
 */
export function withinStrictHold(kind: Kind, request: ParsedRequest, plan: Plan, heldUinr: bigint | null): ParsedRequest {
  if (heldUinr === null || !kind.hasOutput || request.maxTokens !== null) return request
  const ceilings = plan.attempts.map(({ model }) => outputCeiling(request, model))
  return withMaxTokens(request, Math.min(tokensFor(heldUinr, request, plan), ...ceilings))
}

/** Output tokens that an amount pays for behind the prompt, on the dearest attempt. */
function tokensFor(amountUinr: bigint, request: ParsedRequest, plan: Plan): number {
  return Math.min(
    ...plan.attempts.map(attempt => {
      const { price } = attempt.route
      return outputTokensFor(amountUinr, price, heldUsage(plainUsage(promptTokensMost(request, attempt), 0), request, price))
    }),
  )
}

/** With a ceiling of its own; one token for each answer at least, which the check behind it then refuses when even that is too much. */
function withMaxTokens(request: ParsedRequest, tokens: number | null): ParsedRequest {
  return tokens === null ? request : request.withMaxTokens(Math.max(1, Math.floor(tokens / request.answers)))
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
  const fits = kind.hasOutput ? Math.floor(tokensFor(cap, request, plan) / request.answers) : 0
  const send = fits >= 1 ? `Send max_tokens of at most ${fits}, a shorter prompt, or a cheaper model.` : 'Send less input, or choose a cheaper model.'
  return fail('call_cap_exceeded', {
    message: `One call of this ${owner} may cost at most ₹${inrFromUinr(cap)} (max_cost_inr_per_call); this one could cost ₹${inrFromUinr(holdOf(kind, request, plan).worstUinr)} on its dearest route. ${send} No provider was called.`,
    extra: { scope: owner, max_cost_inr_per_call: inrFromUinr(cap) },
  })
}
