import { api } from '../../api/call.ts'
import { Check } from '../../ui/forms/check.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { NumberField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../ui/forms/money-field.tsx'
import { findModels } from '../keys/use-keys.ts'
import { areCapsReady, capChanges, RunCapFields, type TypedCaps, typedCaps } from '../runs/caps/run-cap-fields.tsx'
import { text } from './text.ts'
import type { Agent, RuleChanges } from './use-agents.ts'

/** The rules of an agent as a person typed them. */
export interface Rules {
  readonly mayDelegate: boolean
  readonly cost: MoneyChoice
  readonly outputTokens: string
  readonly concurrency: string
  readonly tokensAMinute: string
  readonly toolsAMinute: string
  readonly toolsADay: string
  readonly run: TypedCaps
  readonly models: readonly ComboOption[]
  readonly providers: readonly ComboOption[]
}

const numbers = [
  ['outputTokens', 'max_output_tokens'],
  ['concurrency', 'max_concurrency'],
  ['tokensAMinute', 'tpm_limit'],
  ['toolsAMinute', 'tool_rpm'],
  ['toolsADay', 'tool_daily'],
] as const
type NumberName = (typeof numbers)[number][0]

export const emptyRules: Rules = {
  mayDelegate: false,
  cost: choiceOf(null),
  outputTokens: '',
  concurrency: '',
  tokensAMinute: '',
  toolsAMinute: '',
  toolsADay: '',
  run: typedCaps(null),
  models: [],
  providers: [],
}

const textOf = (value: number | null): string => (value === null ? '' : String(value))
const optionsOf = (ids: readonly string[] | null): ComboOption[] => (ids ?? []).map(id => ({ value: id, label: id }))
const idsOf = (options: readonly ComboOption[]): string[] | null => (options.length === 0 ? null : options.map(({ value }) => value))

/** Returns the rules of an agent as text. */
export const rulesOf = (agent: Agent): Rules => ({
  mayDelegate: agent.may_delegate,
  cost: choiceOf(agent.max_cost_inr_per_call),
  outputTokens: textOf(agent.max_output_tokens),
  concurrency: textOf(agent.max_concurrency),
  tokensAMinute: textOf(agent.tpm_limit),
  toolsAMinute: textOf(agent.tool_rpm),
  toolsADay: textOf(agent.tool_daily),
  run: typedCaps(agent.run),
  models: optionsOf(agent.allowed_models),
  providers: optionsOf(agent.allowed_providers),
})

const isWhole = (typed: string): boolean => typed === '' || /^[1-9]\d{0,8}$/.test(typed)

/** Returns whether everything that was typed can be sent. */
export const isReady = (rules: Rules, before: Rules): boolean =>
  limitOf(rules.cost) !== undefined && numbers.every(([name]) => isWhole(rules[name])) && areCapsReady(rules.run, before.run)

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Returns the rules that differ from before, as the gateway takes them. Null removes a rule, and happens only by an own choice. */
export function changesOf(rules: Rules, before: Rules): RuleChanges {
  const changes: RuleChanges = {}
  const cost = limitOf(rules.cost)
  if (rules.mayDelegate !== before.mayDelegate) changes.may_delegate = rules.mayDelegate
  if (cost !== undefined && cost !== limitOf(before.cost)) changes.max_cost_inr_per_call = cost
  for (const [name, field] of numbers) if (rules[name] !== before[name]) changes[field] = rules[name] === '' ? null : Number(rules[name])
  const run = capChanges(rules.run, before.run)
  if (run !== null) changes.run = run
  if (!isSame(idsOf(rules.models), idsOf(before.models))) changes.allowed_models = idsOf(rules.models)
  if (!isSame(idsOf(rules.providers), idsOf(before.providers))) changes.allowed_providers = idsOf(rules.providers)
  return changes
}

const foundMax = 20

/** Finds providers by a part of their id or name. The list is one public document. */
async function findProviders(typed: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const { data } = await api('listProviders', { signal })
  const words = typed.toLowerCase()
  return data
    .filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words))
    .slice(0, foundMax)
    .map(({ id, residency }) => ({ value: id, label: id, ...(residency === 'india' ? { hint: 'India' } : {}) }))
}

interface RuleFieldsProps {
  readonly value: Rules
  readonly onChange: (value: Rules) => void
  /** False for an agent below another one: a run belongs to the agent at the top. */
  readonly hasRuns: boolean
}

/** The fields for the rules of an agent. */
export function RuleFields({ value, onChange, hasRuns }: RuleFieldsProps) {
  const set = <K extends keyof Rules>(name: K, next: Rules[K]): void => onChange({ ...value, [name]: next })
  const number = (name: NumberName, label: string) => (
    <NumberField
      label={label}
      placeholder={text.noLimit}
      value={value[name]}
      error={isWhole(value[name]) ? null : text.wholeNumber}
      onChange={event => set(name, event.target.value.trim())}
    />
  )
  return (
    <>
      <Check label={text.mayDelegate} hint={text.mayDelegateHint} isChecked={value.mayDelegate} onChange={next => set('mayDelegate', next)} />
      <Combobox
        label={text.models}
        hint={text.modelsHint}
        placeholder={text.modelsPlaceholder}
        name="models"
        isMultiple
        value={value.models}
        onChange={next => set('models', next)}
        search={findModels}
      />
      <Combobox
        label={text.providers}
        placeholder={text.providersPlaceholder}
        name="providers"
        isMultiple
        value={value.providers}
        onChange={next => set('providers', next)}
        search={findProviders}
      />
      <MoneyField label={text.costPerCall} value={value.cost} onChange={next => set('cost', next)} />
      <div className="rule-grid">
        {number('outputTokens', text.outputTokens)}
        {number('concurrency', text.concurrency)}
        {number('tokensAMinute', text.tokensAMinute)}
        {number('toolsAMinute', text.toolsAMinute)}
        {number('toolsADay', text.toolsADay)}
      </div>
      {hasRuns && <RunCapFields value={value.run} onChange={next => set('run', next)} />}
    </>
  )
}
