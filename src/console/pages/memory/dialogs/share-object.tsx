import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { writeText } from '../../../api/bytes.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import type { ComboOption } from '../../../ui/forms/combobox.tsx'
import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { nameOf, type Places } from '../places.ts'
import { bytesAddress, type MemoryObject, memoryChanged } from '../use-memory.ts'
import { SpaceFields } from './new-space.tsx'
import { dialogText } from './text.ts'

const { share: words, cancel } = dialogText

interface ShareObjectProps {
  readonly places: Places
  readonly object: MemoryObject & { readonly text: string }
  readonly onClose: () => void
}

/** Puts a copy of an object into a shared space, which may be a new one. A copy never replaces an object of the space. */
export function ShareObject({ places, object, onClose }: ShareObjectProps) {
  const [chosen, setChosen] = useState(places.spaces[0] ?? '')
  const [fresh, setFresh] = useState('')
  const [people, setPeople] = useState<readonly ComboOption[]>([])
  const [name, setName] = useState(nameOf(object.key))
  const isNew = chosen === ''
  const space = isNew ? fresh : chosen
  const share = useMutation({
    mutationFn: async () => {
      if (isNew) await api('createShareConsole', { body: { space, member_uids: people.map(({ value }) => Number(value)) } })
      await writeText(bytesAddress(`shared/${space}/${name}`), object.text, { ifNoneMatch: '*' })
    },
    onSuccess: () => {
      toast(words.done(space))
      onClose()
    },
    // The space may be there although its first object was refused.
    onSettled: memoryChanged,
  })
  const error = share.error === null ? null : apiErrorOf(share.error)
  const isReady = space !== '' && name.trim() !== ''
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      onSubmit={() => isReady && share.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="primary" type="submit" isBusy={share.isPending} disabled={!isReady}>
            {words.act}
          </Button>
        </>
      }
    >
      <p className="quiet">{words.about}</p>
      <SelectField label={words.space} value={chosen} onChange={event => setChosen(event.target.value)}>
        {places.spaces.map(one => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
        <option value="">{words.newSpace}</option>
      </SelectField>
      {isNew && <SpaceFields name={fresh} people={people} onName={setFresh} onPeople={setPeople} />}
      <TextField
        label={words.name}
        value={name}
        maxLength={400}
        error={error?.status === 412 ? words.taken : null}
        onChange={event => setName(event.target.value)}
      />
      {error && error.status !== 412 && <InlineError error={error} />}
    </Dialog>
  )
}
