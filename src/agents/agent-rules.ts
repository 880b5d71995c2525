/** What the owner of an agent rules for its calls: which models and providers, how much one call may cost or produce, how many run at once. */
import { inrFromUinr, uinrFromInr } from '../platform/money.ts'
import type { CallPolicy } from '../platform/principal.ts'

/** The rules of one agent. Null is no rule. */
export interface AgentRules {
  readonly allowedModels: readonly string[] | null
  readonly allowedProviders: readonly string[] | null
  readonly maxCostUinr: bigint | null
  readonly maxOutputTokens: number | null
  readonly maxConcurrency: number | null
}

/** What somebody wishes for an agent; a part that is left out stays as it is. */
export interface AgentWish extends Partial<AgentRules> {
  readonly mayDelegate?: boolean
}

/** The parts of a wish as a client sends them. */
export interface AgentWishInput {
  readonly may_delegate?: boolean | undefined
  readonly allowed_models?: readonly string[] | null | undefined
  readonly allowed_providers?: readonly string[] | null | undefined
  readonly max_cost_inr_per_call?: number | null | undefined
  readonly max_output_tokens?: number | null | undefined
  readonly max_concurrency?: number | null | undefined
}

const noPolicies: readonly CallPolicy[] = []

/** The wish behind what a client sent. */
export function wishOf(input: AgentWishInput): AgentWish {
  return {
    ...(input.may_delegate === undefined ? {} : { mayDelegate: input.may_delegate }),
    ...(input.allowed_models === undefined ? {} : { allowedModels: withoutDuplicates(input.allowed_models) }),
    ...(input.allowed_providers === undefined ? {} : { allowedProviders: withoutDuplicates(input.allowed_providers) }),
    ...(input.max_cost_inr_per_call === undefined
      ? {}
      : { maxCostUinr: input.max_cost_inr_per_call === null ? null : uinrFromInr(input.max_cost_inr_per_call) }),
    ...(input.max_output_tokens === undefined ? {} : { maxOutputTokens: input.max_output_tokens }),
    ...(input.max_concurrency === undefined ? {} : { maxConcurrency: input.max_concurrency }),
  }
}

/** The rules as clients read them. */
export function rulesView(rules: AgentRules) {
  return {
    allowed_models: rules.allowedModels,
    allowed_providers: rules.allowedProviders,
    max_cost_inr_per_call: rules.maxCostUinr === null ? null : inrFromUinr(rules.maxCostUinr),
    max_output_tokens: rules.maxOutputTokens,
    max_concurrency: rules.maxConcurrency,
  }
}

/** The rules as the pipeline reads them: at most one policy, none when nothing is ruled. */
export function policiesOf(
  agentId: number,
  { allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency }: AgentRules,
): readonly CallPolicy[] {
  if ([allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency].every(rule => rule === null)) return noPolicies
  return [{ owner: 'agent', ownerId: agentId, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency }]
}

/** True when the wish changes nothing. */
export function isAsWished(now: AgentRules & { readonly mayDelegate: boolean }, wish: AgentWish): boolean {
  const then = { ...now, ...wish }
  return (
    then.mayDelegate === now.mayDelegate &&
    isSameList(then.allowedModels, now.allowedModels) &&
    isSameList(then.allowedProviders, now.allowedProviders) &&
    then.maxCostUinr === now.maxCostUinr &&
    then.maxOutputTokens === now.maxOutputTokens &&
    then.maxConcurrency === now.maxConcurrency
  )
}

/**
 * Which part of a wish goes beyond these rules, by its name on the wire and in words; null: none does. A part that is left out, or null
 * for no rule of its own, stays within, because the rules of all above hold for a child too.
 */
export function beyond(wish: AgentWish, bounds: AgentRules): string | null {
  const foreign = (wished: readonly string[] | null | undefined, given: readonly string[] | null): string | undefined =>
    given === null ? undefined : wished?.find(id => !given.includes(id))
  const isMore = <T extends number | bigint>(wished: T | null | undefined, given: T | null): boolean =>
    wished !== null && wished !== undefined && given !== null && wished > given
  const model = foreign(wish.allowedModels, bounds.allowedModels)
  if (model !== undefined) return `allowed_models: ${model} is not among ${bounds.allowedModels?.join(', ')}`
  const provider = foreign(wish.allowedProviders, bounds.allowedProviders)
  if (provider !== undefined) return `allowed_providers: ${provider} is not among ${bounds.allowedProviders?.join(', ')}`
  if (isMore(wish.maxCostUinr, bounds.maxCostUinr)) return `max_cost_inr_per_call: at most ${inrFromUinr(bounds.maxCostUinr ?? 0n)}`
  if (isMore(wish.maxOutputTokens, bounds.maxOutputTokens)) return `max_output_tokens: at most ${bounds.maxOutputTokens}`
  if (isMore(wish.maxConcurrency, bounds.maxConcurrency)) return `max_concurrency: at most ${bounds.maxConcurrency}`
  return null
}

/** Which part of a wish is looser than what is ruled now, in words; null: none is. Here null for a rule that is there is looser too. */
export function looser(wish: AgentWish, now: AgentRules & { readonly mayDelegate: boolean }): string | null {
  if (wish.mayDelegate === true && !now.mayDelegate) return 'may_delegate: it may not'
  if (wish.allowedModels === null && now.allowedModels !== null) return 'allowed_models: there is a list'
  if (wish.allowedProviders === null && now.allowedProviders !== null) return 'allowed_providers: there is a list'
  if (wish.maxCostUinr === null && now.maxCostUinr !== null) return 'max_cost_inr_per_call: there is a cap'
  if (wish.maxOutputTokens === null && now.maxOutputTokens !== null) return 'max_output_tokens: there is a cap'
  if (wish.maxConcurrency === null && now.maxConcurrency !== null) return 'max_concurrency: there is a cap'
  return beyond(wish, now)
}

function isSameList(a: readonly string[] | null, b: readonly string[] | null): boolean {
  return a === b || (a !== null && b !== null && a.length === b.length && a.every((id, i) => id === b[i]))
}

const withoutDuplicates = (ids: readonly string[] | null): readonly string[] | null => (ids === null ? null : [...new Set(ids)])
