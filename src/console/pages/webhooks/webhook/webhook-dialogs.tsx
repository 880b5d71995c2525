import { useMutation } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { useChangeWebhook, type Webhook } from '../use-webhooks.ts'
import { WebhookSecret } from '../webhook-secret.tsx'

interface WebhookDialogProps {
  readonly webhook: Webhook
  readonly onClose: () => void
}

/** Asks before an endpoint gets a new secret, and shows it once. */
export function RotateSecret({ webhook, onClose }: WebhookDialogProps) {
  const rotate = useMutation({ mutationFn: () => api('rotateWebhookSecret', { path: { id: webhook.id } }) })
  if (rotate.data) return <WebhookSecret title={text.secret.rotated} about={text.secret.rotatedAbout} secret={rotate.data.secret} onDone={onClose} />
  return (
    <Confirm
      title={text.rotate}
      act={text.rotate}
      isBusy={rotate.isPending}
      error={rotate.error && apiErrorOf(rotate.error)}
      onConfirm={() => rotate.mutate()}
      onClose={onClose}
    >
      <p>{text.rotateAbout}</p>
    </Confirm>
  )
}

/** Asks before an endpoint is disabled, because that ends what waits. */
export function DisableWebhook({ webhook, onClose }: WebhookDialogProps) {
  const change = useChangeWebhook(webhook.id, () => {
    toast(text.disabled)
    onClose()
  })
  return (
    <Confirm
      title={text.disable}
      act={text.disable}
      isBusy={change.isPending}
      error={change.error && apiErrorOf(change.error)}
      onConfirm={() => change.mutate({ enabled: false })}
      onClose={onClose}
    >
      <p>{text.disableAbout}</p>
    </Confirm>
  )
}

/** Asks before an endpoint is removed. Nobody can undo it, so the host is typed. */
export function RemoveWebhook({ webhook, onClose, onRemoved }: WebhookDialogProps & { readonly onRemoved: () => void }) {
  const remove = useMutation({
    mutationFn: () => api('deleteWebhook', { path: { id: webhook.id } }),
    onSuccess: async () => {
      toast(text.removed)
      onRemoved()
      await invalidate('listWebhooks')
    },
  })
  return (
    <Confirm
      title={text.removeTitle}
      act={text.remove}
      nameToType={new URL(webhook.url).host}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{webhook.url}</p>
      <p>{text.removeAbout}</p>
    </Confirm>
  )
}
