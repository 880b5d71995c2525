import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Status } from '../../../ui/data/status.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { AddStep } from '../../steps/add-step.tsx'
import { type DraftStep, draftStep, type Step, sameSteps, stepsOf } from '../../steps/draft-steps.ts'
import { StepList } from '../../steps/step-list.tsx'
import type { Model } from '../../steps/use-models.ts'
import { chainText as text } from '../text.ts'
import { useSaveChain } from '../use-chains.ts'

interface ChainEditorProps {
  readonly model: Model
  /** Null: the model has no chain. */
  readonly saved: readonly Step[] | null
  /** Draws the preview. The steps are undefined while the draft is what is saved. */
  readonly preview: (steps: readonly Step[] | undefined, isDraft: boolean) => ReactNode
}

/** A model without a chain begins with itself, which is what its calls do now. */
const firstDraft = (saved: readonly Step[] | null, model: string): readonly DraftStep[] => (saved ?? [{ model }]).map(draftStep)

/** The editor of a chain. The draft stays while the page reads the saved chain again, and when the gateway refuses it. */
export function ChainEditor({ model, saved, preview }: ChainEditorProps) {
  const [before, setBefore] = useState(saved)
  const [steps, setSteps] = useState(() => firstDraft(saved, model.id))
  const save = useSaveChain(model.id, kept => {
    setBefore(kept)
    setSteps(current => (sameSteps(stepsOf(current), kept) ? current : kept.map(draftStep)))
  })
  const wanted = stepsOf(steps)
  const isSame = before !== null && sameSteps(wanted, before)
  const isOvertaken = !save.isPending && !sameSteps(saved ?? [], before ?? [])
  const show = (chain: readonly Step[] | null): void => {
    save.reset()
    setBefore(chain)
    setSteps(firstDraft(chain, model.id))
  }
  return (
    <form
      className="routing-columns"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (!isSame && steps.length > 0 && !save.isPending) save.mutate(wanted)
      }}
    >
      <Panel title={text.steps} actions={!isSame && before !== null && <Status tone="warn">{text.unsaved}</Status>}>
        <div className="stack-5">
          {before === null && <p className="quiet">{text.noneDraft}</p>}
          {isOvertaken && (
            <div className="chain-overtaken" role="status">
              <p>{text.changed}</p>
              <Button size="sm" onClick={() => show(saved)}>
                {text.takeTheirs}
              </Button>
            </div>
          )}
          {steps.length === 0 ? <p className="quiet">{text.noSteps}</p> : <StepList label={text.steps} steps={steps} onChange={setSteps} />}
          <AddStep kind={model.kind} steps={steps} onChange={setSteps} />
          {save.error && <InlineError error={apiErrorOf(save.error)} />}
          <div className="routing-acts">
            <Button look="primary" type="submit" isBusy={save.isPending} disabled={isSame || steps.length === 0}>
              {text.save}
            </Button>
            {!isSame && before !== null && <Button onClick={() => show(before)}>{text.reset}</Button>}
          </div>
        </div>
      </Panel>
      {preview(isSame || steps.length === 0 ? undefined : wanted, !isSame)}
    </form>
  )
}
