import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { Button } from '../../ui/forms/button.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { type EventChoice, EventFields, eventsBody, hasEvents } from './event-fields.tsx'
import { text } from './text.ts'
import type { EventType } from './use-webhooks.ts'
import { WebhookSecret } from './webhook-secret.tsx'

interface CreateWebhookProps {
  readonly events: readonly EventType[]
  readonly onClose: () => void
  /** Receives the id of the new endpoint, after its secret was stored. */
  readonly onMade: (id: number) => void
}

/** The form for a new endpoint, and then its secret. */
export function CreateWebhook({ events, onClose, onMade }: CreateWebhookProps) {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [choice, setChoice] = useState<EventChoice>({ kind: 'all', types: [] })
  const make = useMutation({
    mutationFn: (body: CallOptions<'createWebhook'>['body']) => api('createWebhook', { body }),
    onSuccess: () => invalidate('listWebhooks'),
  })
  if (make.data) {
    const { id, secret, url: made } = make.data
    return <WebhookSecret title={text.secret.created} about={made} secret={secret} onDone={() => onMade(id)} />
  }
  const isReady = url.trim() !== '' && hasEvents(choice)
  const onSubmit = (): void => {
    if (!isReady || make.isPending) return
    make.mutate({ url: url.trim(), ...(description.trim() === '' ? {} : { description: description.trim() }), ...eventsBody(choice) })
  }
  return (
    <Dialog
      title={text.create}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={!isReady}>
            {text.createAct}
          </Button>
        </>
      }
    >
      <TextField
        label={text.form.url}
        hint={text.form.urlHint}
        placeholder={text.form.urlPlaceholder}
        inputMode="url"
        maxLength={2048}
        value={url}
        onChange={event => setUrl(event.target.value)}
      />
      <TextField
        label={text.form.description}
        hint={text.form.descriptionHint}
        isOptional
        maxLength={200}
        value={description}
        onChange={event => setDescription(event.target.value)}
      />
      <EventFields events={events} value={choice} onChange={setChoice} />
      {make.error && <InlineError error={apiErrorOf(make.error)} />}
    </Dialog>
  )
}
