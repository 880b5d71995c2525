import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Fold, RadioCards } from '../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { SelectField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { KeySecret } from './key-secret.tsx'
import { changesOf, emptyLimits, isReady, LimitFields } from './limit-fields.tsx'
import { text } from './text.ts'
import { findWorkspaces } from './use-keys.ts'

type Scope = 'inference' | 'full'

/** The form for a new key, and then its secret. Three fields, and the limits folded. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('')
  const [scope, setScope] = useState<Scope>('inference')
  const [days, setDays] = useState('90')
  const [limits, setLimits] = useState(emptyLimits)
  const [workspaces, setWorkspaces] = useState<readonly ComboOption[]>([])
  const make = useMutation({
    mutationFn: (body: CallOptions<'createKey'>['body']) => api('createKey', { body }),
    onSuccess: () => invalidate('listKeys', 'orgBudgets', 'listWorkspaces'),
  })
  if (make.data)
    return (
      <KeySecret title={text.createdTitle(make.data.name)} secret={make.data.key} onDone={onClose}>
        {text.created}
      </KeySecret>
    )
  const error = make.error === null ? null : apiErrorOf(make.error)
  const isNameWrong = error !== null && (error.code === 'duplicate_key_name' || error.code === 'bad_name')
  const onSubmit = (): void => {
    if (!isReady(limits, emptyLimits)) return
    make.mutate({
      scope,
      ...(name.trim() === '' ? {} : { name: name.trim() }),
      ...(days === '' ? {} : { expires_days: Number(days) }),
      ...(workspaces[0] === undefined ? {} : { workspace_id: Number(workspaces[0].value) }),
      ...changesOf(limits, emptyLimits),
    })
  }
  return (
    <Dialog
      title={text.create}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={!isReady(limits, emptyLimits)}>
            Create key
          </Button>
        </>
      }
    >
      <TextField
        label={text.name}
        placeholder={text.namePlaceholder}
        hint={text.nameHint}
        maxLength={100}
        value={name}
        error={isNameWrong ? error.message : null}
        onChange={event => setName(event.target.value)}
      />
      <RadioCards label={text.purpose} value={scope} onChange={setScope} options={text.purposes} />
      <SelectField label={text.ends} hint={text.endsHint} value={days} onChange={event => setDays(event.target.value)}>
        {text.endOptions.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      <Fold title={text.limits} hint={text.limitsHint}>
        <LimitFields value={limits} onChange={setLimits} />
        <Combobox
          label={text.workspace}
          hint={text.workspaceHint}
          placeholder={text.workspacePlaceholder}
          name="workspaces"
          value={workspaces}
          onChange={setWorkspaces}
          search={findWorkspaces}
        />
      </Fold>
      {error && !isNameWrong && <InlineError error={error} />}
    </Dialog>
  )
}
