/** The rules that the owner of an agent sets for its calls. They bound models and providers, the cost and length of one call, concurrent calls, tokens a minute, and tools. */

import type { CallPolicy } from '../platform/security/principal.ts'
import { areSameCaps, capsAfter, looserCap, type RunCapsInput, runCapsOf, runCapsViewOf, type StoredRunCaps } from '../platform/security/run-caps.ts'
import { patternBeyond } from '../platform/security/tool-patterns.ts'
import { inrFromUinr, uinrFromInr } from '../platform/values/money.ts'

/** The rules of one agent. Null means that there is no such rule. Only `allowedTools` allows nothing when it is null. */
export interface AgentRules {
  readonly allowedModels: readonly string[] | null
  readonly allowedProviders: readonly string[] | null
  readonly maxCostUinr: bigint | null
  readonly maxOutputTokens: number | null
  readonly maxConcurrency: number | null
  readonly tpmLimit: number | null
  readonly allowedTools: readonly string[] | null
  /** The caps of each run of the agent. Only an agent at the top of its family has any. */
  readonly runCaps: StoredRunCaps | null
}

/** The rules that a request sets for an agent. A rule that is left out does not change. */
export interface AgentParams extends Partial<Omit<AgentRules, 'runCaps'>> {
  readonly mayDelegate?: boolean
  /** The changed caps of runs. A cap that is left out does not change. */
  readonly run?: RunCapsInput | null
}

/** The rules of a request as a client sends them. */
export interface AgentParamsInput {
  readonly may_delegate?: boolean | undefined
  readonly allowed_models?: readonly string[] | null | undefined
  readonly allowed_providers?: readonly string[] | null | undefined
  readonly max_cost_inr_per_call?: number | null | undefined
  readonly max_output_tokens?: number | null | undefined
  readonly max_concurrency?: number | null | undefined
  readonly tpm_limit?: number | null | undefined
  readonly allowed_tools?: readonly string[] | null | undefined
  readonly run?: RunCapsInput | null | undefined
}

const noPolicies: readonly CallPolicy[] = []

/** Converts the rules that a client sent into the names of the code. */
export function paramsOf(input: AgentParamsInput): AgentParams {
  return {
    ...(input.may_delegate === undefined ? {} : { mayDelegate: input.may_delegate }),
    ...(input.allowed_models === undefined ? {} : { allowedModels: withoutDuplicates(input.allowed_models) }),
    ...(input.allowed_providers === undefined ? {} : { allowedProviders: withoutDuplicates(input.allowed_providers) }),
    ...(input.max_cost_inr_per_call === undefined
      ? {}
      : { maxCostUinr: input.max_cost_inr_per_call === null ? null : uinrFromInr(input.max_cost_inr_per_call) }),
    ...(input.max_output_tokens === undefined ? {} : { maxOutputTokens: input.max_output_tokens }),
    ...(input.max_concurrency === undefined ? {} : { maxConcurrency: input.max_concurrency }),
    ...(input.tpm_limit === undefined ? {} : { tpmLimit: input.tpm_limit }),
    ...(input.allowed_tools === undefined ? {} : { allowedTools: withoutDuplicates(input.allowed_tools) }),
    ...(input.run === undefined ? {} : { run: input.run }),
  }
}

/** Returns the rules in the form that clients read. */
export function rulesView(rules: AgentRules) {
  return {
    allowed_models: rules.allowedModels,
    allowed_providers: rules.allowedProviders,
    max_cost_inr_per_call: rules.maxCostUinr === null ? null : inrFromUinr(rules.maxCostUinr),
    max_output_tokens: rules.maxOutputTokens,
    max_concurrency: rules.maxConcurrency,
    tpm_limit: rules.tpmLimit,
    allowed_tools: rules.allowedTools,
    run: runCapsViewOf(rules.runCaps),
  }
}

/** Returns the rules in the form that the pipeline reads: a list with one policy. The list is empty for an agent without rules. */
export function policiesOf(
  agentId: number,
  { allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency, tpmLimit, allowedTools, runCaps }: AgentRules,
): readonly CallPolicy[] {
  if ([allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency, tpmLimit, allowedTools, runCaps].every(rule => rule === null))
    return noPolicies
  const tools = allowedTools === null ? {} : { allowedTools }
  const caps = runCapsOf(runCaps)
  return [
    {
      owner: 'agent',
      ownerId: agentId,
      allowedModels,
      allowedProviders,
      maxCostUinr,
      maxOutputTokens,
      maxConcurrency,
      tpmLimit,
      ...tools,
      ...(caps === null ? {} : { run: caps }),
    },
  ]
}

/** Returns whether the request changes nothing. */
export function isAsRequested(now: AgentRules & { readonly mayDelegate: boolean }, params: AgentParams): boolean {
  const then = { ...now, ...params, runCaps: runCapsAfter(now, params) }
  return (
    then.mayDelegate === now.mayDelegate &&
    isSameList(then.allowedModels, now.allowedModels) &&
    isSameList(then.allowedProviders, now.allowedProviders) &&
    then.maxCostUinr === now.maxCostUinr &&
    then.maxOutputTokens === now.maxOutputTokens &&
    then.maxConcurrency === now.maxConcurrency &&
    then.tpmLimit === now.tpmLimit &&
    isSameList(then.allowedTools, now.allowedTools) &&
    areSameCaps(then.runCaps, now.runCaps)
  )
}

/** Returns the caps of runs after a request. */
export const runCapsAfter = ({ runCaps }: Pick<AgentRules, 'runCaps'>, { run }: AgentParams): StoredRunCaps | null =>
  run === undefined ? runCaps : capsAfter(runCaps, run)

/**
 * Returns the first requested rule that allows more than `bounds`, as its name on the wire and an explanation. Returns null when no rule does. A rule
 * that is left out, or is null, never allows more: a child without a rule of its own still obeys the rules of all agents above it.
 */
export function beyond(params: AgentParams, bounds: AgentRules): string | null {
  const foreign = (requested: readonly string[] | null | undefined, given: readonly string[] | null): string | undefined =>
    given === null ? undefined : requested?.find(id => !given.includes(id))
  const isMore = <T extends number | bigint>(requested: T | null | undefined, given: T | null): boolean =>
    requested !== null && requested !== undefined && given !== null && requested > given
  const model = foreign(params.allowedModels, bounds.allowedModels)
  if (model !== undefined) return `allowed_models: ${model} is not among ${bounds.allowedModels?.join(', ')}`
  const provider = foreign(params.allowedProviders, bounds.allowedProviders)
  if (provider !== undefined) return `allowed_providers: ${provider} is not among ${bounds.allowedProviders?.join(', ')}`
  if (isMore(params.maxCostUinr, bounds.maxCostUinr)) return `max_cost_inr_per_call: at most ${inrFromUinr(bounds.maxCostUinr ?? 0n)}`
  if (isMore(params.maxOutputTokens, bounds.maxOutputTokens)) return `max_output_tokens: at most ${bounds.maxOutputTokens}`
  if (isMore(params.maxConcurrency, bounds.maxConcurrency)) return `max_concurrency: at most ${bounds.maxConcurrency}`
  if (isMore(params.tpmLimit, bounds.tpmLimit)) return `tpm_limit: at most ${bounds.tpmLimit}`
  const tool = patternBeyond(params.allowedTools ?? [], bounds.allowedTools)
  if (tool !== undefined) return `allowed_tools: ${tool} is not within ${bounds.allowedTools?.join(', ') || 'none'}`
  return null
}

/**
 * Returns the first requested rule that is looser than the present rule, as its name on the wire and an explanation. Returns null when there is none.
 * Removing an existing rule with null counts as looser, except for `allowedTools`, where null allows nothing.
 */
export function looser(params: AgentParams, now: AgentRules & { readonly mayDelegate: boolean }): string | null {
  if (params.mayDelegate === true && !now.mayDelegate) return 'may_delegate: it may not'
  if (params.allowedModels === null && now.allowedModels !== null) return 'allowed_models: there is a list'
  if (params.allowedProviders === null && now.allowedProviders !== null) return 'allowed_providers: there is a list'
  if (params.maxCostUinr === null && now.maxCostUinr !== null) return 'max_cost_inr_per_call: there is a cap'
  if (params.maxOutputTokens === null && now.maxOutputTokens !== null) return 'max_output_tokens: there is a cap'
  if (params.maxConcurrency === null && now.maxConcurrency !== null) return 'max_concurrency: there is a cap'
  const cap = looserCap(now.runCaps, runCapsAfter(now, params))
  if (cap !== null) return `run.${cap}: there is a cap`
  if (params.tpmLimit === null && now.tpmLimit !== null) return 'tpm_limit: there is a limit'
  return beyond(params, now)
}

function isSameList(a: readonly string[] | null, b: readonly string[] | null): boolean {
  return a === b || (a !== null && b !== null && a.length === b.length && a.every((id, i) => id === b[i]))
}

const withoutDuplicates = (ids: readonly string[] | null): readonly string[] | null => (ids === null ? null : [...new Set(ids)])
