import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { TextAreaField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { AddStep } from '../../steps/add-step.tsx'
import { draftStep, sameSteps, stepsOf } from '../../steps/draft-steps.ts'
import { StepList } from '../../steps/step-list.tsx'
import { useModelsById } from '../../steps/use-models.ts'
import { Readme } from '../readme.tsx'
import type { Collection, WholeCollection } from '../search.ts'
import { formText, text } from '../text.ts'
import { type CollectionChanges, useChangeCollection } from '../use-collections.ts'

type Edited = Pick<Collection, 'name' | 'steps' | 'readme_md' | 'version'>

const draftOf = ({ name, steps, readme_md: readme }: Edited) => ({ name, steps: steps.map(draftStep), readme })

/** The steps, the name and the readme with their draft. Only what differs is sent, and it makes the next version. */
export function EditTab({ collection }: { readonly collection: WholeCollection }) {
  const [before, setBefore] = useState<Edited>(collection)
  const [draft, setDraft] = useState(() => draftOf(collection))
  const kind = useModelsById()?.get(collection.model)?.kind
  const begin = (from: Edited): void => {
    setBefore(from)
    setDraft(draftOf(from))
  }
  const save = useChangeCollection(collection.id, changed => {
    begin(changed)
    toast(formText.saved(changed.version))
  })
  const steps = stepsOf(draft.steps)
  const changes: CollectionChanges = {
    ...(draft.name.trim() === before.name ? {} : { name: draft.name.trim() }),
    ...(sameSteps(steps, before.steps) ? {} : { steps }),
    ...(draft.readme === before.readme_md ? {} : { readme_md: draft.readme }),
  }
  const isChanged = Object.keys(changes).length > 0
  const isReady = isChanged && draft.name.trim() !== '' && steps.length > 0 && !save.isPending
  return (
    <form
      className="columns-2 collection-columns"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isReady) save.mutate(changes)
      }}
    >
      <Panel title={text.steps}>
        <div className="stack-5">
          {collection.version > before.version && !save.isPending && (
            <div className="collection-overtaken" role="status">
              <p>{formText.changed}</p>
              <Button size="sm" onClick={() => begin(collection)}>
                {formText.takeTheirs}
              </Button>
            </div>
          )}
          <TextField label={formText.name} maxLength={100} value={draft.name} onChange={event => setDraft({ ...draft, name: event.target.value })} />
          <StepList label={text.steps} steps={draft.steps} onChange={next => setDraft({ ...draft, steps: [...next] })} />
          {kind !== undefined && <AddStep kind={kind} steps={draft.steps} onChange={next => setDraft({ ...draft, steps: [...next] })} />}
          {save.error && <InlineError error={apiErrorOf(save.error)} />}
          <div className="collection-acts">
            <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
              {formText.save}
            </Button>
            {isChanged && <Button onClick={() => begin(before)}>{formText.reset}</Button>}
          </div>
        </div>
      </Panel>
      <Panel title={text.readme}>
        <div className="stack-5">
          <TextAreaField
            label={formText.readme}
            hint={formText.readmeHint}
            rows={8}
            value={draft.readme}
            onChange={event => setDraft({ ...draft, readme: event.target.value })}
          />
          <Readme markdown={draft.readme} headingAbove={2} />
        </div>
      </Panel>
    </form>
  )
}
