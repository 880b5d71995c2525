import { Check } from '../../../ui/forms/check.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { NumberField } from '../../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../../ui/forms/money-field.tsx'
import './run-cap-fields.css'

/** The caps of each run of an agent or key, as the gateway reports them. Null: none at all. */
export interface RunCapsView {
  readonly max_cost_inr: number | null
  readonly max_calls: number | null
  readonly max_minutes: number | null
  readonly max_subagents: number | null
  readonly max_depth: number | null
  readonly required: boolean
  readonly strict: boolean
}

const numbers = ['max_calls', 'max_minutes', 'max_subagents', 'max_depth'] as const
type NumberName = (typeof numbers)[number]

/** The caps as a person typed them. */
export interface TypedCaps extends Readonly<Record<NumberName, string>> {
  readonly cost: MoneyChoice
  readonly required: boolean
  readonly strict: boolean
}

/** The caps that differ from before, as the gateway takes them. */
export interface CapChanges extends Partial<Record<NumberName, number | null>> {
  max_cost_inr?: number | null
  required?: boolean
  strict?: boolean
}

const text = {
  title: 'Caps of each run',
  hint: 'Cost, calls, time and sub-agents of one job',
  cost: 'Most that a run may cost',
  max_calls: 'Calls of a run',
  max_minutes: 'Minutes of a run',
  max_subagents: 'Sub-agents of a run',
  max_depth: 'Depth of sub-agents',
  noCap: 'No cap',
  wholeNumber: 'Type a whole number above 0, or leave it empty for no cap.',
  strict: 'Never pass the cost',
  strictHint: 'Without it, the last call of a run may pass the cap a little.',
  required: 'Refuse calls without a run',
  requiredHint: 'Each call must then say which run it belongs to.',
} as const

const textOf = (value: number | null | undefined): string => (value === null || value === undefined ? '' : String(value))
const isWhole = (typed: string): boolean => typed === '' || /^[1-9]\d{0,8}$/.test(typed)

/** Returns caps as text. */
export const typedCaps = (caps: RunCapsView | null): TypedCaps => ({
  cost: choiceOf(caps?.max_cost_inr ?? null),
  max_calls: textOf(caps?.max_calls),
  max_minutes: textOf(caps?.max_minutes),
  max_subagents: textOf(caps?.max_subagents),
  max_depth: textOf(caps?.max_depth),
  required: caps?.required ?? false,
  strict: caps?.strict ?? false,
})

/** Returns whether everything that was typed can be sent. A cap of 0 that the API has set may stay. */
export const areCapsReady = (caps: TypedCaps, before: TypedCaps): boolean =>
  limitOf(caps.cost) !== undefined && numbers.every(name => isWhole(caps[name]) || caps[name] === before[name])

/** Returns what differs from before. Null when nothing does. */
export function capChanges(caps: TypedCaps, before: TypedCaps): CapChanges | null {
  const changes: CapChanges = {}
  const cost = limitOf(caps.cost)
  if (cost !== undefined && cost !== limitOf(before.cost)) changes.max_cost_inr = cost
  for (const name of numbers) if (caps[name] !== before[name]) changes[name] = caps[name] === '' ? null : Number(caps[name])
  if (caps.required !== before.required) changes.required = caps.required
  if (caps.strict !== before.strict) changes.strict = caps.strict
  return Object.keys(changes).length === 0 ? null : changes
}

/** The fields for the caps of each run. */
export function RunCapFields({ value, onChange }: { readonly value: TypedCaps; readonly onChange: (value: TypedCaps) => void }) {
  return (
    <Fold title={text.title} hint={text.hint}>
      <div className="stack-5">
        <MoneyField label={text.cost} noneLabel={text.noCap} value={value.cost} onChange={cost => onChange({ ...value, cost })} />
        <Check label={text.strict} hint={text.strictHint} isChecked={value.strict} onChange={strict => onChange({ ...value, strict })} />
        <div className="run-cap-grid">
          {numbers.map(name => (
            <NumberField
              key={name}
              label={text[name]}
              placeholder={text.noCap}
              value={value[name]}
              error={isWhole(value[name]) || value[name] === '0' ? null : text.wholeNumber}
              onChange={event => onChange({ ...value, [name]: event.target.value.trim() })}
            />
          ))}
        </div>
        <Check label={text.required} hint={text.requiredHint} isChecked={value.required} onChange={required => onChange({ ...value, required })} />
      </div>
    </Fold>
  )
}
