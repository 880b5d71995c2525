import { Check } from '../../ui/forms/check.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { FieldError } from '../../ui/forms/field.tsx'
import { text } from './text.ts'
import type { EventType, Webhook } from './use-webhooks.ts'

/** What an endpoint receives. The chosen events stay while the person looks at "All events". */
export interface EventChoice {
  readonly kind: 'all' | 'some'
  readonly types: readonly string[]
}

/** Returns the choice of an endpoint. */
export const eventChoiceOf = ({ subscribe_all: all, event_types: types }: Pick<Webhook, 'subscribe_all' | 'event_types'>): EventChoice => ({
  kind: all ? 'all' : 'some',
  types,
})

/** Returns the fields of a request. */
export const eventsBody = ({ kind, types }: EventChoice) => (kind === 'all' ? { subscribe_all: true } : { subscribe_all: false, event_types: [...types] })

/** Returns whether an endpoint with this choice receives anything. */
export const hasEvents = ({ kind, types }: EventChoice): boolean => kind === 'all' || types.length > 0

interface EventFieldsProps {
  readonly events: readonly EventType[]
  readonly value: EventChoice
  readonly onChange: (value: EventChoice) => void
}

/** The choice of events: all, or single ones by family, each with its sentence. A ping cannot be chosen, because each endpoint receives it. */
export function EventFields({ events, value, onChange }: EventFieldsProps) {
  const families = [...new Set(events.map(({ family }) => family))].filter(family => family !== 'test')
  const toggle = (type: string, isChosen: boolean): void =>
    onChange({ ...value, types: isChosen ? [...value.types, type] : value.types.filter(each => each !== type) })
  return (
    <>
      <RadioCards label={text.form.events} value={value.kind} options={text.form.kinds} onChange={kind => onChange({ ...value, kind })} />
      {value.kind === 'some' && (
        <div className="event-families">
          {families.map(family => (
            <fieldset key={family} className="event-family">
              <legend>{text.families[family] ?? family}</legend>
              {events
                .filter(event => event.family === family)
                .map(({ type, when }) => (
                  <Check key={type} label={<code>{type}</code>} hint={when} isChecked={value.types.includes(type)} onChange={is => toggle(type, is)} />
                ))}
            </fieldset>
          ))}
          {value.types.length === 0 && <FieldError>{text.form.none}</FieldError>}
        </div>
      )}
    </>
  )
}
