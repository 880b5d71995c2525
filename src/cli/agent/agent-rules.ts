/** The rules of an agent in three forms: as options of the command line, as fields of the API, and as text for people. */
import { type Command, Option } from 'commander'
import { rupees } from '../command-output.ts'
import { amount, count, list, orNone } from '../option-values.ts'
import type { AgentRow } from './agent-lookup.ts'

/** The given rules. `none` removes a rule. A rule that is not named does not change. */
export interface RuleFlags {
  readonly models?: string[] | 'none'
  readonly providers?: string[] | 'none'
  readonly allowedTools?: string[] | 'none'
  readonly mayDelegate?: boolean
  readonly maxCostInr?: number | 'none'
  readonly maxOutputTokens?: number | 'none'
  readonly maxConcurrency?: number | 'none'
  readonly runMaxCostInr?: number | 'none'
  readonly runMaxCalls?: number | 'none'
  readonly runLoop?: string
}

/** Adds an option for each rule. */
export function addRuleOptions(command: Command): Command {
  return command
    .option('--models <ids>', 'models that it may use, with commas between; none: any', orNone(list))
    .option('--providers <ids>', 'providers that may serve it, with commas between; none: any', orNone(list))
    .option('--allowed-tools <names>', 'tools of MCP servers that it may call, such as crm__find,git__*, with commas between; none: no tool', orNone(list))
    .option('--may-delegate', 'it may create child agents')
    .option('--no-may-delegate', 'it may not')
    .option('--max-cost-inr <inr>', 'most rupees of one call; none: no cap', orNone(amount))
    .option('--max-output-tokens <n>', 'most output tokens of one call; none: no cap', orNone(count))
    .option('--max-concurrency <n>', 'most concurrent calls; none: no cap', orNone(count))
    .option('--run-max-cost-inr <inr>', 'most rupees of each of its runs; none: no cap', orNone(amount))
    .option('--run-max-calls <n>', 'most calls of each of its runs; none: no cap', orNone(count))
    .addOption(new Option('--run-loop <rule>', 'what happens to a run that repeats itself (default: warn)').choices(['off', 'warn', 'stop']))
}

/** Returns the rules in the form of the gateway. */
export function ruleParamsOf({
  models,
  providers,
  allowedTools,
  mayDelegate,
  maxCostInr,
  maxOutputTokens,
  maxConcurrency,
  runMaxCostInr,
  runMaxCalls,
  runLoop,
}: RuleFlags): Record<string, unknown> {
  const rules = {
    allowed_models: models,
    allowed_providers: providers,
    allowed_tools: allowedTools,
    may_delegate: mayDelegate,
    max_cost_inr_per_call: maxCostInr,
    max_output_tokens: maxOutputTokens,
    max_concurrency: maxConcurrency,
  }
  const run = withoutNone({ max_cost_inr: runMaxCostInr, max_calls: runMaxCalls, loop: runLoop })
  return { ...withoutNone(rules), run: Object.values(run).every(rule => rule === undefined) ? undefined : run }
}

const withoutNone = (rules: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, rule === 'none' ? null : rule]))

/** Returns an agent with its budget and rules, in the form for people. */
export function agentFields(row: AgentRow): Record<string, string> {
  const names = (ids: readonly string[] | null): string => (ids === null ? 'all' : ids.join(', '))
  const cap = (limit: number | null, unit: string): string => (limit === null ? 'none' : unit + String(limit))
  return {
    agent: `${row.name} (id ${row.id}), ${row.status}`,
    'monthly budget': row.monthly_budget_inr === null ? 'none' : `₹${rupees([row.monthly_budget_inr])[0]}`,
    'spent this month': `₹${rupees([row.spend_month_inr])[0]}${row.held_inr > 0 ? `, ₹${rupees([row.held_inr])[0]} held by running calls` : ''}`,
    models: names(row.allowed_models),
    providers: names(row.allowed_providers),
    tools: row.allowed_tools?.length ? row.allowed_tools.join(', ') : 'none',
    'may delegate': row.may_delegate ? 'yes' : 'no',
    'cap of a call': `cost ${cap(row.max_cost_inr_per_call, '₹')}, output tokens ${cap(row.max_output_tokens, '')}`,
    'concurrent calls': row.max_concurrency === null ? 'any number' : String(row.max_concurrency),
    'cap of a run': `cost ${cap(row.run?.max_cost_inr ?? null, '₹')}, calls ${cap(row.run?.max_calls ?? null, '')}`,
    'loops of a run': row.run?.loop ?? 'warn',
  }
}
