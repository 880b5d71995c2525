import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react'
import { IconButton } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { type DraftStep, moved, type Step, stepText } from './draft-steps.ts'
import './steps.css'
import { text } from './text.ts'
import { useDrag } from './use-drag.ts'
import { useStepProviders } from './use-models.ts'

interface StepListProps {
  readonly label: string
  readonly steps: readonly DraftStep[]
  readonly onChange: (steps: readonly DraftStep[]) => void
}

/** The steps of a chain in their order. A person sorts them by drag, by the arrow keys on a handle, or by buttons. A screen reader says each move. */
export function StepList({ label, steps, onChange }: StepListProps) {
  const helpId = useId()
  const list = useRef<HTMLOListElement>(null)
  const [said, setSaid] = useState('')
  const focused = useRef<string | null>(null)
  const providersOf = useStepProviders()
  // An element that moves within the list loses the focus, and a button at the end of the list becomes disabled.
  useLayoutEffect(() => {
    if (focused.current === null) return
    const [id = '', control = ''] = focused.current.split(' ')
    focused.current = null
    const row = list.current?.querySelector(`[data-step="${id}"]`)
    const wanted = row?.querySelector<HTMLElement>(`.${control}:not(:disabled)`) ?? row?.querySelector<HTMLElement>('.step-handle')
    wanted?.focus()
  })
  const move = (from: number, to: number, control: string): void => {
    const step = steps[from]
    const next = moved(steps, from, to)
    if (step === undefined || next === steps) return
    focused.current = `${step.id} ${control}`
    setSaid(text.movedTo(stepText(step), to + 1, steps.length))
    onChange(next)
  }
  const drag = useDrag(list, (from, to) => move(from, to, 'step-handle'))
  const onKeyDown = (event: KeyboardEvent, place: number): void => {
    const to = { ArrowUp: place - 1, ArrowDown: place + 1, Home: 0, End: steps.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    move(place, to, 'step-handle')
  }
  const remove = (step: DraftStep): void => {
    setSaid(text.removed(stepText(step)))
    onChange(steps.filter(one => one !== step))
    const rest = steps.filter(one => one !== step)
    const next = rest[Math.min(steps.indexOf(step), rest.length - 1)]
    if (next !== undefined) focused.current = `${next.id} step-handle`
  }
  return (
    <>
      <ol ref={list} className={drag.isDragging ? 'steps steps-dragging' : 'steps'} aria-label={label}>
        {steps.map((step, place) => (
          <li key={step.id} data-step={step.id} data-dragged={drag.isDragged(place) || undefined} className="step" style={drag.style(place)}>
            <button
              type="button"
              className="step-handle"
              aria-label={text.handle(step.model, place + 1, steps.length)}
              aria-describedby={steps.length > 1 ? helpId : undefined}
              onKeyDown={event => onKeyDown(event, place)}
              {...drag.handle(place)}
            >
              <Icon name="grip" />
            </button>
            <span className="step-number" aria-hidden="true">
              {place + 1}
            </span>
            <div className="step-what">
              <code>{step.model}</code>
              <StepProvider
                step={step}
                known={providersOf(step.model)}
                onChange={provider => onChange(steps.map(one => (one === step ? { ...step, provider } : one)))}
              />
            </div>
            <div className="step-acts">
              <span className="step-arrows">
                <MoveButton step={step} direction="up" isPossible={place > 0} onMove={() => move(place, place - 1, 'step-up')} />
                <MoveButton step={step} direction="down" isPossible={place < steps.length - 1} onMove={() => move(place, place + 1, 'step-down')} />
              </span>
              <IconButton icon="close" label={text.remove(stepText(step))} onClick={() => remove(step)} />
            </div>
          </li>
        ))}
      </ol>
      {steps.length > 1 && (
        <p className="field-hint" id={helpId}>
          {text.handleHelp}
        </p>
      )}
      <p className="visually-hidden" role="status">
        {said}
      </p>
    </>
  )
}

interface MoveButtonProps {
  readonly step: DraftStep
  readonly direction: 'up' | 'down'
  readonly isPossible: boolean
  readonly onMove: () => void
}

function MoveButton({ step, direction, isPossible, onMove }: MoveButtonProps) {
  const label = text[direction](stepText(step))
  return (
    <button type="button" className={`step-move step-${direction}`} title={label} aria-label={label} disabled={!isPossible} onClick={onMove}>
      <Icon name={direction} size={14} />
    </button>
  )
}

interface StepProviderProps {
  readonly step: DraftStep
  readonly known: readonly { readonly id: string; readonly label: string }[]
  readonly onChange: (provider: string | null) => void
}

function StepProvider({ step: { model, provider }, known, onChange }: StepProviderProps) {
  const isStrange = provider !== null && !known.some(({ id }) => id === provider)
  if (known.length === 0 && provider === null) return <span className="quiet">{text.anyProvider}</span>
  return (
    <span className="select step-provider">
      <select className="input" aria-label={text.provider(model)} value={provider ?? ''} onChange={event => onChange(event.target.value || null)}>
        <option value="">{text.anyProvider}</option>
        {isStrange && <option value={provider}>{provider}</option>}
        {known.map(({ id, label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </span>
  )
}

/** The steps of a chain that nobody edits here. */
export function StepsShown({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <ol className="steps-shown">
      {steps.map((step, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes, and a chain may name a step twice.
        <li key={place}>
          <code>{step.model}</code>
          {step.provider !== undefined && <span className="quiet"> on {step.provider}</span>}
        </li>
      ))}
    </ol>
  )
}
