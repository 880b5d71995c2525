import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { toolsChanged } from '../use-tools.ts'

interface BlockToolProps {
  readonly serverId: string
  readonly name: string
  readonly onClose: () => void
}

/** Asks for a reason, and blocks a tool. */
export function BlockTool({ serverId, name, onClose }: BlockToolProps) {
  const [reason, setReason] = useState('')
  const block = useMutation({
    mutationFn: () => api('blockTools', { path: { id: serverId }, body: { tools: [name], ...(reason.trim() === '' ? {} : { reason: reason.trim() }) } }),
    onSuccess: async () => {
      await toolsChanged()
      toast(text.pin.blocked(name))
      onClose()
    },
  })
  return (
    <Dialog
      title={text.pin.blockTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => !block.isPending && block.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" isBusy={block.isPending}>
            {text.pin.block}
          </Button>
        </>
      }
    >
      <p>{text.pin.blockAbout(name)}</p>
      <TextField
        label={text.pin.reason}
        hint={text.pin.reasonHint}
        isOptional
        maxLength={200}
        value={reason}
        onChange={event => setReason(event.target.value)}
      />
      {block.error && <InlineError error={apiErrorOf(block.error)} />}
    </Dialog>
  )
}
