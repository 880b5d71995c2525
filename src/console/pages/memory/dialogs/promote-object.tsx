import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Combobox, type ComboOption } from '../../../ui/forms/combobox.tsx'
import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { nameOf, type Places } from '../places.ts'
import { type MemoryObject, memoryChanged } from '../use-memory.ts'
import { findKeys } from './find.ts'
import { dialogText } from './text.ts'

const { promote: words, cancel } = dialogText

interface PromoteObjectProps {
  readonly places: Places
  readonly object: MemoryObject & { readonly text: string }
  readonly onClose: () => void
}

/** Writes the text of an object as a record. A record that is there already is replaced only when the person says so. */
export function PromoteObject({ places, object, onClose }: PromoteObjectProps) {
  const navigate = useNavigate()
  const [workspace, setWorkspace] = useState('')
  const [name, setName] = useState(nameOf(object.key))
  const [sources, setSources] = useState<readonly ComboOption[]>([{ value: object.key, label: object.key }])
  const promote = useMutation({
    mutationFn: (replaces: boolean) =>
      api('promoteConsole', {
        body: {
          name: name.trim(),
          content: object.text,
          source_keys: sources.map(({ value }) => value),
          ...(workspace === '' ? {} : { workspace_id: workspace.split('/')[1] ?? '' }),
        },
        ...(replaces ? {} : { ifNoneMatch: '*' as const }),
      }),
    onSuccess: async ({ key }) => {
      await memoryChanged()
      toast(words.done)
      onClose()
      void navigate({ to: '/memory/$', params: { _splat: key } })
    },
  })
  const error = promote.error === null ? null : apiErrorOf(promote.error)
  const isTaken = error?.status === 412
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      onSubmit={() => name.trim() !== '' && promote.mutate(isTaken)}
      actions={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look={isTaken ? 'danger' : 'primary'} type="submit" isBusy={promote.isPending} disabled={name.trim() === ''}>
            {isTaken ? words.replace : words.act}
          </Button>
        </>
      }
    >
      <p className="quiet">{words.about}</p>
      <TextField
        label={words.name}
        value={name}
        maxLength={200}
        error={isTaken ? words.taken : error?.code === 'bad_name' ? error.message : null}
        onChange={event => {
          setName(event.target.value)
          promote.reset()
        }}
      />
      <SelectField
        label={words.where}
        value={workspace}
        onChange={event => {
          setWorkspace(event.target.value)
          promote.reset()
        }}
      >
        <option value="">{words.organisation}</option>
        {places.workspaces.map(({ folder, name: label }) => (
          <option key={folder} value={folder}>
            {label}
          </option>
        ))}
      </SelectField>
      <Combobox
        label={words.sources}
        hint={words.sourcesHint}
        placeholder={words.sourcesPlaceholder}
        name="memory-keys"
        isMultiple
        value={sources}
        onChange={setSources}
        search={findKeys}
      />
      {error && !isTaken && error.code !== 'bad_name' && <InlineError error={error} />}
    </Dialog>
  )
}
