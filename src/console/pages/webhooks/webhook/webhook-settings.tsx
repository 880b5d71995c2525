import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { curlOf } from '../../../api/call.ts'
import { Code } from '../../../ui/data/code.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { CopyButton } from '../../../ui/forms/copy.tsx'
import { TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { type EventChoice, EventFields, eventChoiceOf, eventsBody, hasEvents } from '../event-fields.tsx'
import { text } from '../text.ts'
import { type EventType, useChangeWebhook, type Webhook } from '../use-webhooks.ts'

const isSame = (one: EventChoice, other: EventChoice): boolean =>
  one.kind === other.kind && (one.kind === 'all' || [...one.types].sort().join() === [...other.types].sort().join())

/** The form for what an endpoint receives. What was typed stays while the list is read again, and only what differs is sent. */
export function WebhookSettings({ webhook, events }: { readonly webhook: Webhook; readonly events: readonly EventType[] }) {
  const [before, setBefore] = useState(webhook)
  const [description, setDescription] = useState(webhook.description)
  const [choice, setChoice] = useState(() => eventChoiceOf(webhook))
  const change = useChangeWebhook(webhook.id, saved => {
    setBefore(saved)
    setDescription(saved.description)
    toast(text.form.saved)
  })
  const changes = {
    ...(description.trim() === before.description ? {} : { description: description.trim() }),
    ...(isSame(choice, eventChoiceOf(before)) ? {} : eventsBody(choice)),
  }
  const isReady = Object.keys(changes).length > 0 && hasEvents(choice)
  return (
    <Panel>
      <div className="stack-5">
        <form
          className="stack-5"
          noValidate
          onSubmit={event => {
            event.preventDefault()
            if (isReady && !change.isPending) change.mutate(changes)
          }}
        >
          <TextField
            label={text.form.description}
            hint={text.form.descriptionHint}
            isOptional
            maxLength={200}
            value={description}
            onChange={event => setDescription(event.target.value)}
          />
          <EventFields events={events} value={choice} onChange={setChoice} />
          {change.error && <InlineError error={apiErrorOf(change.error)} />}
          <div>
            <Button look="primary" type="submit" isBusy={change.isPending} disabled={!isReady}>
              {text.form.save}
            </Button>
          </div>
        </form>
        <Fold title="Show as curl">
          <Code text={curlOf('changeWebhook', { path: { id: webhook.id }, body: eventsBody(choice) })} />
          <CopyButton text={String(webhook.id)} label="Copy id" />
        </Fold>
      </div>
    </Panel>
  )
}
