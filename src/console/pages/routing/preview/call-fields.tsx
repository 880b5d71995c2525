import { Check } from '../../../ui/forms/check.tsx'
import { SelectField, TextAreaField } from '../../../ui/forms/field.tsx'
import { type ModelKind, useStepProviders } from '../../steps/use-models.ts'
import { previewText as text } from '../text.ts'
import { type CallDraft, hasMessages, type Order, orders } from './preview-body.ts'

interface CallFieldsProps {
  readonly model: string
  readonly kind: ModelKind | undefined
  readonly value: CallDraft
  readonly onChange: (value: CallDraft) => void
  /** True: the steps of a chain name the providers and their order. */
  readonly isChain?: boolean
}

/** What a person says of the call: its message and what it asks of routing. */
export function CallFields({ model, kind, value, onChange, isChain = false }: CallFieldsProps) {
  const set = (changes: Partial<CallDraft>): void => onChange({ ...value, ...changes })
  const providersOf = useStepProviders()
  return (
    <>
      {hasMessages(kind) && (
        <TextAreaField
          label={text.message}
          hint={isChain ? undefined : text.messageHint}
          placeholder={text.messageSample}
          rows={2}
          maxLength={20_000}
          value={value.message}
          onChange={event => set({ message: event.target.value })}
        />
      )}
      <div className="form-pair">
        {!isChain && (
          <SelectField label={text.order} value={value.order} onChange={event => set({ order: event.target.value as Order })}>
            {orders.map(order => (
              <option key={order} value={order}>
                {text.orders[order]}
              </option>
            ))}
          </SelectField>
        )}
        <SelectField label={text.place} value={value.place} onChange={event => set({ place: event.target.value === 'india_only' ? 'india_only' : 'anywhere' })}>
          <option value="anywhere">{text.places.anywhere}</option>
          <option value="india_only">{text.places.india_only}</option>
        </SelectField>
        {!isChain && (
          <SelectField label={text.provider} value={value.provider} onChange={event => set({ provider: event.target.value })}>
            <option value="">{text.anyProvider}</option>
            {providersOf(model).map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </SelectField>
        )}
      </div>
      {hasMessages(kind) && (
        <div className="form-pair">
          <Check label={text.tools} isChecked={value.hasTools} onChange={hasTools => set({ hasTools })} />
          <Check label={text.picture} isChecked={value.hasPicture} onChange={hasPicture => set({ hasPicture })} />
        </div>
      )}
    </>
  )
}
