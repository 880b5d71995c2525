import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Check } from '../../../ui/forms/check.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { SelectField, TextAreaField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { Accepting, ProviderRow } from '../search.ts'
import { formText, text } from '../text.ts'
import { useSaveKey } from '../use-providers.ts'
import { bodyOf, emptyDraft, type KeyDraft } from './draft.ts'
import { SecretFields } from './secret-fields.tsx'

interface AddKeyProps {
  readonly rows: readonly ProviderRow[]
  /** The id of the provider that is chosen first. Empty: none. */
  readonly first: string
  readonly onClose: () => void
  readonly onSaved: (id: string) => void
}

/** The form for a key of a provider. The provider tests it before it is saved. What was typed stays until it is accepted. */
export function AddKey({ rows, first, onClose, onSaved }: AddKeyProps) {
  const [id, setId] = useState(first)
  const [draft, setDraft] = useState<KeyDraft>(emptyDraft)
  const possible = rows.filter(({ accepting }) => accepting !== null)
  const row = possible.find(one => one.id === id)
  const provider = row?.accepting ?? null
  const save = useSaveKey(id, saved => {
    toast(saved.verified ? formText.saved(row?.name ?? id, saved.models_discovered) : formText.savedUnverified(row?.name ?? id))
    onSaved(id)
  })
  const body = provider === null ? null : bodyOf(provider, draft)
  const isReplaced = row !== undefined && row.own !== null
  return (
    <Dialog
      title={isReplaced ? formText.replaceTitle(row.name) : formText.title}
      width="lg"
      onClose={onClose}
      onSubmit={() => body !== null && !save.isPending && save.mutate(body)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={body === null}>
            {formText.act}
          </Button>
        </>
      }
    >
      <SelectField label={formText.provider} value={provider === null ? '' : id} onChange={event => setId(event.target.value)}>
        {provider === null && <option value="">{formText.choose}</option>}
        {possible.map(one => (
          <option key={one.id} value={one.id}>
            {one.name}
            {one.residency === 'india' ? ' (India)' : ''}
          </option>
        ))}
      </SelectField>
      {row?.isUntried && <p className="quiet">{text.untried}</p>}
      {provider !== null && (
        <>
          <SecretFields provider={provider} draft={draft} onChange={setDraft} />
          <MoreFields provider={provider} draft={draft} onChange={setDraft} />
        </>
      )}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
    </Dialog>
  )
}

interface MoreFieldsProps {
  readonly provider: Accepting
  readonly draft: KeyDraft
  readonly onChange: (draft: KeyDraft) => void
}

function MoreFields({ provider, draft, onChange }: MoreFieldsProps) {
  const models = (
    <TextAreaField
      label={formText.models}
      hint={formText.modelsHint}
      rows={3}
      value={draft.models}
      onChange={event => onChange({ ...draft, models: event.target.value })}
    />
  )
  const isCloud = (provider.values ?? []).length > 0
  return (
    <>
      {isCloud && models}
      <Fold title={formText.more} hint={formText.moreHint}>
        <Check label={text.always} hint={text.alwaysHint} isChecked={draft.isFirst} onChange={isFirst => onChange({ ...draft, isFirst })} />
        <TextField
          label={text.label}
          hint={text.labelHint}
          maxLength={100}
          value={draft.label}
          onChange={event => onChange({ ...draft, label: event.target.value })}
        />
        {!isCloud && models}
      </Fold>
    </>
  )
}
