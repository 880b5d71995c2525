import { useMutation } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type Connection, toolsChanged } from '../use-tools.ts'

interface EndConnectionProps {
  readonly connection: Connection
  /** The person, in words. */
  readonly whose: string
  readonly onClose: () => void
}

/** Asks before a connection ends. */
export function EndConnection({ connection, whose, onClose }: EndConnectionProps) {
  const end = useMutation({
    mutationFn: () => api('endToolConnection', { path: { id: connection.id } }),
    onSuccess: async () => {
      await toolsChanged()
      toast(text.connections.ended)
      onClose()
    },
  })
  return (
    <Confirm
      title={text.connections.endTitle}
      act={text.connections.end}
      isBusy={end.isPending}
      error={end.error && apiErrorOf(end.error)}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>{text.connections.endAbout(connection.server, whose)}</p>
    </Confirm>
  )
}
