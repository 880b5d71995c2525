import { apiErrorOf } from '../../../api/api-error.ts'
import { curlOf, type ReplyOf } from '../../../api/call.ts'
import { Code } from '../../../ui/data/code.tsx'
import { Facts } from '../../../ui/data/facts.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Peek } from '../../../ui/overlays/peek.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { deliveryShown, prettyJson, text, whyText } from '../text.ts'
import { useDelivery, useRedeliver, type Webhook } from '../use-webhooks.ts'
import { Answer, DeliveryState } from './deliveries.tsx'

type WholeDelivery = ReplyOf<'getWebhookDelivery'>

interface DeliveryPeekProps {
  readonly webhook: Pick<Webhook, 'id' | 'enabled'>
  readonly did: string
  readonly onClose: () => void
}

/** One delivery beside the list: what was sent, and what each attempt met. */
export function DeliveryPeek({ webhook, did, onClose }: DeliveryPeekProps) {
  const delivery = useDelivery(webhook.id, did)
  const again = useRedeliver(webhook.id, did, () => toast(text.delivery.againDone))
  const path = { id: webhook.id, did }
  return (
    <Peek
      title={delivery.data?.type ?? text.tabs.deliveries}
      subtitle={<code>{did}</code>}
      onClose={onClose}
      actions={
        webhook.enabled && (
          <Button icon="rotate" isBusy={again.isPending} onClick={() => again.mutate()}>
            {text.delivery.again}
          </Button>
        )
      }
    >
      {again.error && <InlineError error={apiErrorOf(again.error)} />}
      {!webhook.enabled && <p className="quiet">{text.delivery.askEnable}</p>}
      <Loaded query={delivery} skeleton={<Skeleton lines={8} height={24} />}>
        {data => <DeliveryFacts delivery={data} />}
      </Loaded>
      <Fold title="Show as curl">
        <Code text={curlOf('redeliverWebhookDelivery', { path })} />
      </Fold>
    </Peek>
  )
}

function DeliveryFacts({ delivery }: { readonly delivery: WholeDelivery }) {
  const { status, code, error, payload, attempt_log: log } = delivery
  return (
    <>
      <div className="stack-3 delivery-part">
        <p className="attempt-line">
          <DeliveryState status={status} />
          <span className="quiet">{deliveryShown[status].means}</span>
        </p>
        {error !== null && status !== 'acknowledged' && <p>{whyText(error)}</p>}
        <Facts
          facts={[
            [text.delivery.answer, <Answer key="answer" code={code} error={error} />],
            [text.delivery.queued, <Time key="queued" at={delivery.created_at} />],
            [text.delivery.next, <Time key="next" at={delivery.next_attempt_at} none={text.deliveries.none} />],
            [
              text.delivery.event,
              <code key="event" className="delivery-id">
                {delivery.event_id}
              </code>,
            ],
          ]}
        />
      </div>
      <section className="delivery-part">
        <h3 className="delivery-head">{text.delivery.attempts}</h3>
        {log.length === 0 ? <p className="quiet">{text.delivery.noAttempt}</p> : <Attempts log={log} />}
      </section>
      <section className="delivery-part">
        <h3 className="delivery-head">{text.delivery.payload}</h3>
        {payload === null ? <p className="quiet">{text.delivery.noPayload}</p> : <Code text={prettyJson(payload)} />}
      </section>
      <p className="quiet">{text.delivery.note}</p>
    </>
  )
}

function Attempts({ log }: { readonly log: WholeDelivery['attempt_log'] }) {
  return (
    <ol className="attempts" aria-label={text.delivery.attempts}>
      {log.toReversed().map(({ number, at, duration_ms: ms, status, error }) => (
        <li key={`${number} ${at}`}>
          <span className="attempt-line">
            <Status tone={error === null ? 'good' : 'bad'}>{text.delivery.attempt(number)}</Status>
            <span className="tabular">{status ?? text.deliveries.noCode}</span>
            <span className="tabular quiet">{text.delivery.ms(ms)}</span>
            <span className="quiet">
              <Time at={at} />
            </span>
          </span>
          {error !== null && <span className="quiet">{whyText(error)}</span>}
        </li>
      ))}
    </ol>
  )
}
