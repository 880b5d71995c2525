import { Combobox } from '../../ui/forms/combobox.tsx'
import { type DraftStep, draftStep, stepsMax } from './draft-steps.ts'
import { text } from './text.ts'
import { findModels, type ModelKind } from './use-models.ts'

interface AddStepProps {
  /** The kind of the model that the chain serves. */
  readonly kind: ModelKind
  readonly steps: readonly DraftStep[]
  readonly onChange: (steps: readonly DraftStep[]) => void
}

/** The field that puts another model at the end of a chain. */
export function AddStep({ kind, steps, onChange }: AddStepProps) {
  if (steps.length >= stepsMax) return <p className="quiet">{text.full(stepsMax)}</p>
  return (
    <Combobox
      label={text.addLabel}
      hint={text.addHint}
      placeholder={text.addPlaceholder}
      name={`step-models ${kind}`}
      value={[]}
      onChange={([chosen]) => chosen !== undefined && onChange([...steps, draftStep({ model: chosen.value })])}
      search={typed => findModels(typed, kind)}
    />
  )
}
