import { useMutation } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type ToolServer, toolsChanged } from '../use-tools.ts'

/** Switches a server on or off. */
export function useTurn({ id, name }: Pick<ToolServer, 'id' | 'name'>, onDone: () => void = () => undefined) {
  return useMutation({
    mutationFn: (state: 'on' | 'off') => api(state === 'on' ? 'switchToolServerOn' : 'switchToolServerOff', { path: { id } }),
    onSuccess: async ({ server }) => {
      await toolsChanged()
      toast(server.state === 'on' ? text.server.onDone(name) : text.server.offDone(name))
      onDone()
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

interface ServerDialogProps {
  readonly server: ToolServer
  readonly onClose: () => void
}

/** Asks before a server is switched off, because that ends running calls. */
export function TurnOff({ server, onClose }: ServerDialogProps) {
  const turn = useTurn(server, onClose)
  return (
    <Confirm
      title={text.server.offTitle}
      act={text.server.turnOff}
      isBusy={turn.isPending}
      error={turn.error && apiErrorOf(turn.error)}
      onConfirm={() => turn.mutate('off')}
      onClose={onClose}
    >
      <p>{text.server.offAbout(server.name)}</p>
    </Confirm>
  )
}

/** Asks before a server is removed. Nobody can undo it, so the name is typed. */
export function RemoveServer({ server, onClose, onRemoved }: ServerDialogProps & { readonly onRemoved: () => void }) {
  const remove = useMutation({
    mutationFn: () => api('removeToolServer', { path: { id: server.id } }),
    onSuccess: async () => {
      toast(text.server.removed(server.name))
      onRemoved()
      await invalidate('listToolServers', 'listToolConnections')
    },
  })
  return (
    <Confirm
      title={text.server.removeTitle}
      act={text.server.remove}
      nameToType={server.slug}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.server.removeAbout(server.name)}</p>
      <p>{text.server.removeSlug(server.slug)}</p>
    </Confirm>
  )
}
