import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Field } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { memoryChanged } from '../use-memory.ts'
import { dialogText } from './text.ts'

const { entry, cancel } = dialogText

/** Adds an entry to the journal of a workspace. */
export function AddEntry({ folder, onClose }: { readonly folder: string; readonly onClose: () => void }) {
  const [content, setContent] = useState('')
  // A folder of a day is below the journal, and the gateway adds the day itself.
  const journal = folder.split('/').slice(0, 3).join('/')
  const add = useMutation({
    mutationFn: () => api('appendMemoryConsole', { body: { path: journal, content } }),
    onSuccess: async () => {
      await memoryChanged()
      toast(entry.done)
      onClose()
    },
  })
  return (
    <Dialog
      title={entry.title}
      onClose={onClose}
      onSubmit={() => content.trim() !== '' && add.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="primary" type="submit" isBusy={add.isPending} disabled={content.trim() === ''}>
            {entry.act}
          </Button>
        </>
      }
    >
      <Field label={entry.content} hint={entry.hint}>
        {described => <textarea {...described} className="input memory-entry" rows={8} value={content} onChange={event => setContent(event.target.value)} />}
      </Field>
      {add.error && <InlineError error={apiErrorOf(add.error)} />}
    </Dialog>
  )
}
