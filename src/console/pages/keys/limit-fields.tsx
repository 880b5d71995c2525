import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { NumberField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../ui/forms/money-field.tsx'
import { areCapsReady, capChanges, RunCapFields, type TypedCaps, typedCaps } from '../runs/caps/run-cap-fields.tsx'
import { text } from './text.ts'
import { type ApiKey, findModels, type KeyChanges } from './use-keys.ts'

/** The limits of a key as a person typed them. */
export interface Limits {
  readonly budget: MoneyChoice
  readonly cost: MoneyChoice
  readonly rpm: string
  readonly daily: string
  readonly concurrency: string
  readonly outputTokens: string
  readonly tokensAMinute: string
  readonly toolsAMinute: string
  readonly toolsADay: string
  readonly run: TypedCaps
  readonly models: readonly ComboOption[]
}

export const emptyLimits: Limits = {
  budget: choiceOf(null),
  cost: choiceOf(null),
  rpm: '',
  daily: '',
  concurrency: '',
  outputTokens: '',
  tokensAMinute: '',
  toolsAMinute: '',
  toolsADay: '',
  run: typedCaps(null),
  models: [],
}

const textOf = (value: number | null): string => (value === null ? '' : String(value))

/** Returns the limits of a key as text. */
export const limitsOf = (key: ApiKey): Limits => ({
  budget: choiceOf(key.budget_inr),
  cost: choiceOf(key.max_cost_inr_per_call),
  rpm: textOf(key.rpm_limit),
  daily: textOf(key.daily_limit),
  concurrency: textOf(key.max_concurrency),
  outputTokens: textOf(key.max_output_tokens),
  tokensAMinute: textOf(key.tpm_limit),
  toolsAMinute: textOf(key.tool_rpm),
  toolsADay: textOf(key.tool_daily),
  run: typedCaps(key.run),
  models: (key.allowed_models ?? []).map(id => ({ value: id, label: id })),
})

const numbers = [
  ['rpm', 'rpm_limit'],
  ['daily', 'daily_limit'],
  ['concurrency', 'max_concurrency'],
  ['outputTokens', 'max_output_tokens'],
  ['tokensAMinute', 'tpm_limit'],
  ['toolsAMinute', 'tool_rpm'],
  ['toolsADay', 'tool_daily'],
] as const

const isWhole = (typed: string): boolean => typed === '' || /^[1-9]\d{0,8}$/.test(typed)

/** Returns whether everything that was typed can be sent. */
export const isReady = (limits: Limits, before: Limits): boolean =>
  limitOf(limits.budget) !== undefined &&
  limitOf(limits.cost) !== undefined &&
  numbers.every(([name]) => isWhole(limits[name])) &&
  areCapsReady(limits.run, before.run)

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Returns the fields that differ from before, as the gateway takes them. Null lifts a limit, and happens only by an own choice. */
export function changesOf(limits: Limits, before: Limits): KeyChanges {
  const changes: KeyChanges = {}
  const [budget, cost] = [limitOf(limits.budget), limitOf(limits.cost)]
  if (budget !== undefined && budget !== limitOf(before.budget)) changes.budget_inr = budget
  if (cost !== undefined && cost !== limitOf(before.cost)) changes.max_cost_inr_per_call = cost
  const run = capChanges(limits.run, before.run)
  if (run !== null) changes.run = run
  for (const [name, field] of numbers) if (limits[name] !== before[name]) changes[field] = limits[name] === '' ? null : Number(limits[name])
  if (!isSame(limits.models, before.models)) changes.allowed_models = limits.models.length === 0 ? null : limits.models.map(({ value }) => value)
  return changes
}

/** The fields for all limits of a key. */
export function LimitFields({ value, onChange }: { readonly value: Limits; readonly onChange: (value: Limits) => void }) {
  const set = <K extends keyof Limits>(name: K, next: Limits[K]): void => onChange({ ...value, [name]: next })
  const number = (name: (typeof numbers)[number][0], label: string) => (
    <NumberField
      label={label}
      placeholder={text.noLimit}
      value={value[name]}
      error={isWhole(value[name]) ? null : 'Type a whole number above 0, or leave it empty for no limit.'}
      onChange={event => set(name, event.target.value.trim())}
    />
  )
  return (
    <>
      <MoneyField label={text.budget} hint={text.budgetHint} value={value.budget} onChange={next => set('budget', next)} />
      <MoneyField label={text.costPerCall} value={value.cost} onChange={next => set('cost', next)} />
      <div className="limit-grid">
        {number('rpm', text.rpm)}
        {number('daily', text.daily)}
        {number('concurrency', text.concurrency)}
        {number('outputTokens', text.outputTokens)}
        {number('tokensAMinute', text.tokensAMinute)}
        {number('toolsAMinute', text.toolsAMinute)}
        {number('toolsADay', text.toolsADay)}
      </div>
      <RunCapFields value={value.run} onChange={next => set('run', next)} />
      <Combobox
        label={text.models}
        hint={text.modelsHint}
        placeholder={text.modelsPlaceholder}
        name="models"
        isMultiple
        value={value.models}
        onChange={models => set('models', models)}
        search={findModels}
      />
    </>
  )
}
