import { type ReactNode, useState } from 'react'
import type { ApiError } from '../../api/api-error.ts'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { InlineError } from '../layout/error-panel.tsx'
import { Dialog } from './dialog.tsx'

interface ConfirmProps {
  readonly title: string
  /** What happens, and what it ends. */
  readonly children: ReactNode
  /** The verb of the act, as on the button. */
  readonly act: string
  readonly onConfirm: () => void
  readonly onClose: () => void
  /** The name to type. Only for acts that nobody can undo. */
  readonly nameToType?: string
  readonly isBusy: boolean
  readonly error: ApiError | null
}

/** Asks before an act that ends something. */
export function Confirm({ title, children, act, onConfirm, onClose, nameToType, isBusy, error }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const isMeant = nameToType === undefined || typed.trim() === nameToType
  return (
    <Dialog
      title={title}
      width="sm"
      onClose={onClose}
      onSubmit={() => isMeant && onConfirm()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" isBusy={isBusy} disabled={!isMeant}>
            {act}
          </Button>
        </>
      }
    >
      <div className="prose">{children}</div>
      {nameToType !== undefined && <TextField label={`Type ${nameToType} to confirm`} value={typed} onChange={event => setTyped(event.target.value)} />}
      {error && <InlineError error={error} />}
    </Dialog>
  )
}
