import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { Button } from '../../ui/forms/button.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'
import { type Workspace, workspacesChanged } from './use-workspaces.ts'

interface WorkspaceDialogProps {
  readonly workspace: Workspace
  readonly onClose: () => void
}

/** Archives an active workspace and restores an archived one. */
export function ArchiveOrRestore(props: WorkspaceDialogProps) {
  return props.workspace.archived ? <Restore {...props} /> : <Archive {...props} />
}

function Archive({ workspace: { id, name, keys }, onClose }: WorkspaceDialogProps) {
  const archive = useMutation({
    mutationFn: () => api('archiveWorkspace', { path: { id } }),
    onSuccess: async () => {
      await workspacesChanged()
      toast(text.archived(name))
      onClose()
    },
  })
  const [before, after] = text.archiveAbout(keys)
  return (
    <Confirm
      title={text.archiveTitle}
      act={text.archive}
      isBusy={archive.isPending}
      error={archive.error && apiErrorOf(archive.error)}
      onConfirm={() => archive.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{name}</strong>
        {after}
      </p>
      <p>{text.archiveKept}</p>
    </Confirm>
  )
}

function Restore({ workspace, onClose }: WorkspaceDialogProps) {
  const [name, setName] = useState(workspace.name)
  const restore = useMutation({
    mutationFn: () => api('restoreWorkspace', { path: { id: workspace.id }, body: name.trim() === workspace.name ? {} : { name: name.trim() } }),
    onSuccess: async restored => {
      await workspacesChanged()
      toast(text.restored(restored.name))
      onClose()
    },
  })
  const error = restore.error === null ? null : apiErrorOf(restore.error)
  const isNameWrong = error !== null && ['duplicate_workspace', 'bad_name'].includes(error.code)
  return (
    <Dialog
      title={text.restoreTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => name.trim() !== '' && !restore.isPending && restore.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={restore.isPending} disabled={name.trim() === ''}>
            {text.restore}
          </Button>
        </>
      }
    >
      <p className="quiet">{text.restoreAbout}</p>
      <TextField label={text.name} maxLength={100} value={name} error={isNameWrong ? error.message : null} onChange={event => setName(event.target.value)} />
      {error && !isNameWrong && <InlineError error={error} />}
    </Dialog>
  )
}
