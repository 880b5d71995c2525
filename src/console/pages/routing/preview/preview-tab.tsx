import { useState } from 'react'
import { Combobox } from '../../../ui/forms/combobox.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { findModels, useModelsById } from '../../steps/use-models.ts'
import { previewText as text } from '../text.ts'
import { CallFields } from './call-fields.tsx'
import { previewBody, usualCall } from './preview-body.ts'
import { PreviewResult } from './preview-result.tsx'

interface PreviewTabProps {
  readonly model: string | undefined
  readonly onModel: (model: string | undefined) => void
}

/** A call that a person describes, and the routes that it would take. */
export function PreviewTab({ model, onModel }: PreviewTabProps) {
  const [call, setCall] = useState(usualCall)
  const kind = useModelsById()?.get(model ?? '')?.kind
  return (
    <div className="routing-columns">
      <Panel title={text.title} note={text.note}>
        <div className="stack-5">
          <Combobox
            label={text.model}
            placeholder={text.modelPlaceholder}
            name="preview-models"
            value={model === undefined ? [] : [{ value: model, label: model }]}
            onChange={([chosen]) => {
              // A provider of the model before may not serve the next one.
              setCall(before => ({ ...before, provider: '' }))
              onModel(chosen?.value)
            }}
            search={typed => findModels(typed)}
          />
          <CallFields model={model ?? ''} kind={kind} value={call} onChange={setCall} />
        </div>
      </Panel>
      <Panel title={text.where}>
        {model === undefined ? <p className="quiet">{text.noModel}</p> : <PreviewResult body={previewBody(model, kind, call)} />}
      </Panel>
    </div>
  )
}
