/** What waits to be sent: mail and webhook deliveries. */
import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../api/queries.ts'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { Time } from '../../ui/data/time.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Fold } from '../../ui/forms/choices.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { text, type Unsent, type Webhook } from './text.ts'

/** The outbox of mail. No address is shown. */
export function OutboxPanel() {
  const outbox = useQuery(apiQuery('operatorOutbox'))
  return (
    <Panel title={text.outbox}>
      <Loaded query={outbox}>
        {data => (
          <div className="stack-3">
            {!data.is_sent && <Status tone={data.waiting > 0 ? 'warn' : 'quiet'}>{text.outboxOff}</Status>}
            <Facts
              facts={[
                [text.waiting, count(data.waiting)],
                [text.dueNow, count(data.due_now)],
                [text.oldest, <Time key="oldest" at={data.oldest_at} none="none" />],
                [text.failed, count(data.failed)],
              ]}
            />
            {data.unsent.length > 0 && (
              <Fold title={text.unsent} hint={String(data.unsent.length)}>
                <ul className="health-rows">
                  {data.unsent.map(mail => (
                    <UnsentRow key={mail.id} mail={mail} />
                  ))}
                </ul>
              </Fold>
            )}
          </div>
        )}
      </Loaded>
    </Panel>
  )
}

function UnsentRow({ mail: { id, template, org_id: orgId, state, attempts, created_at: createdAt, error } }: { readonly mail: Unsent }) {
  return (
    <li>
      <p className="health-name">
        <strong>{template}</strong>
        <Status tone={text.mailState[state].tone}>{text.mailState[state].name}</Status>
      </p>
      <p className="quiet">
        Mail {id}
        {orgId === null ? '' : ` of organisation ${orgId}`}, made <Time at={createdAt} />, {attempts} attempts: {error ?? 'no error is known'}
      </p>
    </li>
  )
}

const hasProblem = ({ enabled, failures, open, disabled_reason: reason }: Webhook): boolean => failures > 0 || open > 0 || (!enabled && reason !== null)

/** Webhook deliveries of all organisations. */
export function BacklogPanel() {
  const backlog = useQuery(apiQuery('operatorBacklog'))
  return (
    <Panel title={text.backlog}>
      <Loaded query={backlog}>
        {data => {
          const ill = data.webhooks.filter(hasProblem)
          return (
            <div className="stack-3">
              <Facts
                facts={[
                  [text.open, count(data.open)],
                  [text.dueNow, count(data.due_now)],
                  [text.late, data.late_s === null ? 'none' : `${count(data.late_s)} s`],
                  [text.dead, count(data.dead_last_day)],
                  [text.disabled, `${count(data.disabled)} of ${count(data.endpoints)}`],
                ]}
              />
              {ill.length === 0 ? (
                <p className="quiet">{text.webhooksNone}</p>
              ) : (
                <Fold title={text.webhooks} hint={String(ill.length)}>
                  <ul className="health-rows">
                    {ill.map(webhook => (
                      <WebhookRow key={webhook.id} webhook={webhook} />
                    ))}
                  </ul>
                </Fold>
              )}
            </div>
          )
        }}
      </Loaded>
    </Panel>
  )
}

function WebhookRow({ webhook }: { readonly webhook: Webhook }) {
  const { id, org_id: orgId, host, enabled, failures, open, oldest_at: oldestAt, last_code: code, last_error: error } = webhook
  return (
    <li>
      <p className="health-name">
        <strong>{host}</strong>
        <Status tone={enabled ? 'warn' : 'bad'}>{enabled ? `${count(open)} to send` : 'Disabled'}</Status>
      </p>
      <p className="quiet">
        Webhook {id} of organisation {orgId}, {failures} failed attempts
        {oldestAt !== null && (
          <>
            , oldest delivery <Time at={oldestAt} />
          </>
        )}
        {(code !== null || error !== null) && `, last answer ${error ?? code}`}
      </p>
    </li>
  )
}
