import { useMe } from '../../../app/me.tsx'
import { Choice } from '../../../ui/forms/list-filters.tsx'
import { type AuditFilters, actorKinds } from '../search.ts'
import { text } from '../text.ts'
import { chosenActs, wordsOf } from './acts.ts'

interface AuditFilterBarProps {
  readonly value: AuditFilters
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof AuditFilters]?: AuditFilters[K] | undefined }) => void
}

/** Actor, act and days. All of them are in the address, and the gateway applies them. */
export function AuditFilterBar({ value, onChange }: AuditFilterBarProps) {
  const own = `user:${useMe().user.id}`
  const { actor, act } = value
  const isOther = actor !== undefined && actor !== own && !actorKinds.some(kind => kind === actor)
  return (
    <search className="list-filters">
      <Choice label={text.actor} value={actor ?? ''} onChange={chosen => onChange({ actor: chosen === '' ? undefined : chosen })}>
        <option value="">{text.actors.any}</option>
        <option value={own}>{text.actors.me}</option>
        {actorKinds.map(kind => (
          <option key={kind} value={kind}>
            {text.actors[kind]}
          </option>
        ))}
        {isOther && <option value={actor}>{text.oneActor(actor)}</option>}
      </Choice>
      <Choice label={text.act} value={act ?? ''} onChange={chosen => onChange({ act: chosen === '' ? undefined : chosen })}>
        <option value="">{text.anyAct}</option>
        {act !== undefined && !chosenActs.some(each => each.act === act) && <option value={act}>{wordsOf(act)?.join(' ') ?? act}</option>}
        {chosenActs.map(({ act: name, label }) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </Choice>
      <Day label={text.from} value={value.from} max={value.to} onChange={from => onChange({ from })} />
      <Day label={text.to} value={value.to} min={value.from} onChange={to => onChange({ to })} />
    </search>
  )
}

interface DayProps {
  readonly label: string
  readonly value: string | undefined
  readonly min?: string | undefined
  readonly max?: string | undefined
  readonly onChange: (day: string | undefined) => void
}

function Day({ label, value, min, max, onChange }: DayProps) {
  return (
    <label className="day-filter">
      <span>{label}</span>
      <input
        type="date"
        className="input"
        value={value ?? ''}
        min={min}
        max={max}
        onChange={event => onChange(event.target.value === '' ? undefined : event.target.value)}
      />
    </label>
  )
}
