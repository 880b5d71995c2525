import { type ReactNode, useEffect, useId, useRef } from 'react'
import { Icon } from '../../ui/icon.tsx'
import { Boundary } from '../../ui/layout/error-panel.tsx'
import { type Step, steps } from './progress.ts'
import { text } from './text.ts'

interface StepListProps {
  readonly current: Step
  /** True when the first call has arrived: all steps are done. */
  readonly isComplete: boolean
  readonly onChoose: (step: Step) => void
}

/** The steps of the wizard. An earlier step can be opened again. */
export function StepList({ current, isComplete, onChoose }: StepListProps) {
  const at = isComplete ? steps.length : steps.indexOf(current)
  return (
    <nav className="start-steps" aria-label={text.title}>
      <ol>
        {steps.map((step, index) => {
          const isDone = index < at
          return (
            <li key={step} className={`${isDone ? 'is-done' : ''} ${step === current ? 'is-now' : ''}`}>
              <button type="button" disabled={index > at} aria-current={step === current ? 'step' : undefined} onClick={() => onChoose(step)}>
                <span className="start-mark">{isDone ? <Icon name="check" size={14} /> : index + 1}</span>
                <span className="start-name">
                  {text.steps[step]}
                  {isDone && <span className="visually-hidden">, {text.done}</span>}
                </span>
              </button>
            </li>
          )
        })}
      </ol>
    </nav>
  )
}

interface StepFrameProps {
  readonly step: Step
  readonly title: string
  readonly about?: ReactNode
  readonly children?: ReactNode
  readonly actions?: ReactNode
  /** With it the step is a form, and a `submit` button among the actions sends it. */
  readonly onSubmit?: () => void
}

/** One step: what it asks, and its buttons. The focus goes to its title, so that a screen reader says where the person is and Tab goes on from there. */
export function StepFrame({ step, title, about, children, actions, onSubmit }: StepFrameProps) {
  const id = useId()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  const body = (
    <>
      <header className="start-head">
        <p className="start-count">{text.stepOf(steps.indexOf(step) + 1, steps.length)}</p>
        <h2 id={id} ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {about && <p className="quiet">{about}</p>}
      </header>
      <Boundary>{children}</Boundary>
      {actions && <div className="start-actions">{actions}</div>}
    </>
  )
  return (
    <section className="panel start-step" aria-labelledby={id}>
      {onSubmit === undefined ? (
        <div className="start-body">{body}</div>
      ) : (
        <form
          className="start-body"
          noValidate
          onSubmit={event => {
            event.preventDefault()
            onSubmit()
          }}
        >
          {body}
        </form>
      )}
    </section>
  )
}
