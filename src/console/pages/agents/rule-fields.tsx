import { api } from '../../api/call.ts'
import { Check } from '../../ui/forms/check.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { NumberField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../ui/forms/money-field.tsx'
import { findModels } from '../keys/use-keys.ts'
import { text } from './text.ts'
import type { Agent, RuleChanges } from './use-agents.ts'

/** The rules of an agent as a person typed them. */
export interface Rules {
  readonly mayDelegate: boolean
  readonly cost: MoneyChoice
  readonly outputTokens: string
  readonly concurrency: string
  readonly models: readonly ComboOption[]
  readonly providers: readonly ComboOption[]
}

export const emptyRules: Rules = { mayDelegate: false, cost: choiceOf(null), outputTokens: '', concurrency: '', models: [], providers: [] }

const textOf = (value: number | null): string => (value === null ? '' : String(value))
const optionsOf = (ids: readonly string[] | null): ComboOption[] => (ids ?? []).map(id => ({ value: id, label: id }))
const idsOf = (options: readonly ComboOption[]): string[] | null => (options.length === 0 ? null : options.map(({ value }) => value))

/** Returns the rules of an agent as text. */
export const rulesOf = (agent: Agent): Rules => ({
  mayDelegate: agent.may_delegate,
  cost: choiceOf(agent.max_cost_inr_per_call),
  outputTokens: textOf(agent.max_output_tokens),
  concurrency: textOf(agent.max_concurrency),
  models: optionsOf(agent.allowed_models),
  providers: optionsOf(agent.allowed_providers),
})

const isWhole = (typed: string): boolean => typed === '' || /^[1-9]\d{0,8}$/.test(typed)

/** Returns whether everything that was typed can be sent. */
export const isReady = (rules: Rules): boolean => limitOf(rules.cost) !== undefined && isWhole(rules.outputTokens) && isWhole(rules.concurrency)

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Returns the rules that differ from before, as the gateway takes them. Null removes a rule, and happens only by an own choice. */
export function changesOf(rules: Rules, before: Rules): RuleChanges {
  const changes: RuleChanges = {}
  const cost = limitOf(rules.cost)
  if (rules.mayDelegate !== before.mayDelegate) changes.may_delegate = rules.mayDelegate
  if (cost !== undefined && cost !== limitOf(before.cost)) changes.max_cost_inr_per_call = cost
  if (rules.outputTokens !== before.outputTokens) changes.max_output_tokens = rules.outputTokens === '' ? null : Number(rules.outputTokens)
  if (rules.concurrency !== before.concurrency) changes.max_concurrency = rules.concurrency === '' ? null : Number(rules.concurrency)
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

/** The fields for the rules of an agent. */
export function RuleFields({ value, onChange }: { readonly value: Rules; readonly onChange: (value: Rules) => void }) {
  const set = <K extends keyof Rules>(name: K, next: Rules[K]): void => onChange({ ...value, [name]: next })
  const number = (name: 'outputTokens' | 'concurrency', label: string) => (
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
      </div>
    </>
  )
}
