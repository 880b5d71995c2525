import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { exactTime } from '../../ui/format/dates.ts'
import { Button } from '../../ui/forms/button.tsx'
import { SelectField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import type { KeyAct } from './key-acts.tsx'
import { KeySecret } from './key-secret.tsx'
import { text } from './text.ts'
import type { ApiKey } from './use-keys.ts'

/** The act that a person began, and its key. */
export interface OpenDialog {
  readonly key: ApiKey
  readonly name: Extract<KeyAct, 'rotate' | 'revoke'>
}

interface KeyDialogsProps {
  readonly open: OpenDialog
  readonly onClose: () => void
  /** The key is no longer in the list. */
  readonly onGone: () => void
}

/** The dialog of an act. Disabling and enabling can be undone, so they have none. */
export function KeyDialogs({ open: { key, name }, onClose, onGone }: KeyDialogsProps) {
  switch (name) {
    case 'rotate':
      return <RotateKey apiKey={key} onClose={onClose} />
    case 'revoke':
      return <RevokeKey apiKey={key} onClose={onClose} onGone={onGone} />
  }
}

function RotateKey({ apiKey, onClose }: { readonly apiKey: ApiKey; readonly onClose: () => void }) {
  const [days, setDays] = useState('1')
  const rotate = useMutation({
    mutationFn: () => api('rotateKey', { path: { id: apiKey.id }, body: { overlap_days: Number(days) } }),
    onSuccess: () => invalidate('listKeys'),
  })
  if (rotate.data)
    return (
      <KeySecret title={text.rotatedTitle(apiKey.name)} secret={rotate.data.key} onDone={onClose}>
        {text.rotated(exactTime(rotate.data.previous_until))}
      </KeySecret>
    )
  const [before, name, after] = text.rotateAbout(apiKey.name)
  return (
    <Dialog
      title={text.rotateTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => rotate.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={rotate.isPending}>
            {text.rotate}
          </Button>
        </>
      }
    >
      <p className="prose">
        <span>
          {before}
          <strong>{name}</strong>
          {after}
        </span>
      </p>
      <SelectField
        label={text.overlap}
        hint={days === '0' ? text.rotateWarning : text.rotateWarned}
        value={days}
        onChange={event => setDays(event.target.value)}
      >
        {text.overlaps.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      {rotate.error && <InlineError error={apiErrorOf(rotate.error)} />}
    </Dialog>
  )
}

function RevokeKey({ apiKey, onClose, onGone }: { readonly apiKey: ApiKey; readonly onClose: () => void; readonly onGone: () => void }) {
  const revoke = useMutation({
    mutationFn: () => api('revokeKey', { path: { id: apiKey.id } }),
    onSuccess: async () => {
      await invalidate('listKeys', 'orgBudgets')
      toast(text.revokedToast(apiKey.name))
      onClose()
      onGone()
    },
  })
  const [before, name, after] = text.revokeAbout(apiKey.name)
  return (
    <Confirm
      title={text.revokeTitle}
      act={text.revoke}
      nameToType={apiKey.name}
      isBusy={revoke.isPending}
      error={revoke.error && apiErrorOf(revoke.error)}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{name}</strong>
        {after}
      </p>
    </Confirm>
  )
}
