import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../../ui/forms/button.tsx'
import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { crumbsOf, type Places } from '../places.ts'
import { dialogText } from './text.ts'

const { newFile, cancel } = dialogText

interface NewFileProps {
  readonly places: Places
  /** The folder that is offered first, with its slash. */
  readonly folder: string
  readonly onClose: () => void
}

/** Returns the name of a folder in words. */
const wordsOf = (places: Places, prefix: string): string =>
  crumbsOf(places, prefix)
    .map(({ label }) => label)
    .join(' / ')

/** Asks for the place of a new file, and opens the editor there. Nothing is written before the person saves. */
export function NewFile({ places, folder, onClose }: NewFileProps) {
  const navigate = useNavigate()
  const [chosen, setChosen] = useState(folder)
  const [name, setName] = useState('')
  const folders = [...new Set([folder, places.own, 'agents/', ...places.spaces.map(space => `shared/${space}/`)])]
  const key = `${chosen}${name.trim().replace(/^\/+|\/+$/g, '')}`
  const isReady = key !== chosen
  const onSubmit = (): void => {
    if (!isReady) return
    onClose()
    void navigate({ to: '/memory/$', params: { _splat: key }, search: { view: 'edit', new: true } })
  }
  return (
    <Dialog
      title={newFile.title}
      width="sm"
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="primary" type="submit" disabled={!isReady}>
            {newFile.act}
          </Button>
        </>
      }
    >
      <TextField
        label={newFile.name}
        hint={newFile.hint}
        placeholder={newFile.placeholder}
        maxLength={400}
        value={name}
        onChange={event => setName(event.target.value)}
      />
      <SelectField label={newFile.folder} value={chosen} onChange={event => setChosen(event.target.value)}>
        {folders.map(prefix => (
          <option key={prefix} value={prefix}>
            {wordsOf(places, prefix)}
          </option>
        ))}
      </SelectField>
    </Dialog>
  )
}
