import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { useMe } from '../../../app/me.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Combobox, type ComboOption } from '../../../ui/forms/combobox.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { memoryChanged } from '../use-memory.ts'
import { findMembers } from './find.ts'
import { dialogText } from './text.ts'

const { space: words, cancel } = dialogText

interface SpaceFieldsProps {
  readonly name: string
  readonly people: readonly ComboOption[]
  readonly onName: (name: string) => void
  readonly onPeople: (people: readonly ComboOption[]) => void
  readonly error?: string | null
}

/** The fields of a new space: its name, and who may open it. */
export function SpaceFields({ name, people, onName, onPeople, error = null }: SpaceFieldsProps) {
  const me = useMe()
  return (
    <>
      <TextField
        label={words.name}
        hint={words.nameHint}
        placeholder={words.placeholder}
        maxLength={64}
        value={name}
        error={error}
        onChange={event => onName(event.target.value.toLowerCase().replace(/[\s_]+/g, '-'))}
      />
      <Combobox
        label={words.people}
        hint={words.peopleHint}
        placeholder={words.peoplePlaceholder}
        name="memory-members"
        isMultiple
        value={people}
        onChange={onPeople}
        search={(typed, signal) => findMembers(typed, me.user.id === null ? [] : [me.user.id], signal)}
      />
    </>
  )
}

/** Opens a shared space with the people who may use it. */
export function NewSpace({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [people, setPeople] = useState<readonly ComboOption[]>([])
  const make = useMutation({
    mutationFn: () => api('createShareConsole', { body: { space: name, member_uids: people.map(({ value }) => Number(value)) } }),
    onSuccess: async ({ space }) => {
      await memoryChanged()
      onClose()
      void navigate({ to: '/memory/$', params: { _splat: `shared/${space}` } })
    },
  })
  const error = make.error === null ? null : apiErrorOf(make.error)
  const isName = error !== null && ['bad_name', 'space_taken', 'space_retired'].includes(error.code)
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      onSubmit={() => name !== '' && make.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={name === ''}>
            {words.act}
          </Button>
        </>
      }
    >
      <SpaceFields name={name} people={people} onName={setName} onPeople={setPeople} error={isName ? error.message : null} />
      {error && !isName && <InlineError error={error} />}
    </Dialog>
  )
}
