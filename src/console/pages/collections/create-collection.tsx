import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Combobox } from '../../ui/forms/combobox.tsx'
import { TextAreaField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { AddStep } from '../steps/add-step.tsx'
import { type DraftStep, draftStep, stepsOf } from '../steps/draft-steps.ts'
import { StepList } from '../steps/step-list.tsx'
import { findChainModels, useModelsById } from '../steps/use-models.ts'
import { formText } from './text.ts'
import { collectionsChanged } from './use-collections.ts'

interface CreateCollectionProps {
  readonly onClose: () => void
  readonly onMade: (id: number) => void
}

/** The form for a collection. The first step is the model itself, until the person chooses others. */
export function CreateCollection({ onClose, onMade }: CreateCollectionProps) {
  const [name, setName] = useState('')
  const [model, setModel] = useState<string>()
  const [steps, setSteps] = useState<readonly DraftStep[]>([])
  const [readme, setReadme] = useState('')
  const [isPublic, setPublic] = useState(false)
  const kind = useModelsById()?.get(model ?? '')?.kind
  const create = useMutation({
    mutationFn: (of: string) =>
      api('createCollection', {
        body: {
          name: name.trim(),
          model: of,
          steps: stepsOf(steps),
          ...(readme.trim() === '' ? {} : { readme_md: readme }),
          ...(isPublic ? { public: true } : {}),
        },
      }),
    onSuccess: async made => {
      await collectionsChanged()
      toast(formText.made(made.name))
      onMade(made.id)
    },
  })
  const isReady = name.trim() !== '' && steps.length > 0 && !create.isPending
  return (
    <Dialog
      title={formText.title}
      width="lg"
      onClose={onClose}
      onSubmit={() => isReady && model !== undefined && create.mutate(model)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={create.isPending} disabled={!isReady || model === undefined}>
            {formText.act}
          </Button>
        </>
      }
    >
      <TextField label={formText.name} placeholder={formText.namePlaceholder} maxLength={100} value={name} onChange={event => setName(event.target.value)} />
      <Combobox
        label={formText.model}
        hint={formText.modelHint}
        placeholder={formText.modelPlaceholder}
        name="collection-models"
        value={model === undefined ? [] : [{ value: model, label: model }]}
        onChange={([chosen]) => {
          setModel(chosen?.value)
          if (chosen !== undefined && steps.length === 0) setSteps([draftStep({ model: chosen.value })])
        }}
        search={findChainModels}
      />
      {steps.length > 0 && <StepList label="Steps" steps={steps} onChange={setSteps} />}
      {kind !== undefined && <AddStep kind={kind} steps={steps} onChange={setSteps} />}
      <Fold title={formText.readmeFold}>
        <TextAreaField label={formText.readme} hint={formText.readmeHint} rows={5} value={readme} onChange={event => setReadme(event.target.value)} />
        <Check label={formText.public} hint={formText.publicHint} isChecked={isPublic} onChange={setPublic} />
      </Fold>
      {create.error && <InlineError error={apiErrorOf(create.error)} />}
    </Dialog>
  )
}
