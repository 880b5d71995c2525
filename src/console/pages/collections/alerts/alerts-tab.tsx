import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type ReplyOf } from '../../../api/call.ts'
import { apiQuery, invalidate } from '../../../api/queries.ts'
import { Status } from '../../../ui/data/status.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { WholeCollection } from '../search.ts'
import { alertText as text } from '../text.ts'
import { AlertForm } from './alert-form.tsx'

type Alert = ReplyOf<'listAlerts'>['alerts'][number]

interface AlertsTabProps {
  readonly collection: WholeCollection
  readonly isAdmin: boolean
  readonly ask: string
}

/** The alerts of a collection, and the form for another one. */
export function AlertsTab({ collection: { slug, monitored }, isAdmin, ask }: AlertsTabProps) {
  const alerts = useQuery(apiQuery('listAlerts', { path: { slug } }))
  return (
    <div className="columns-2 collection-columns">
      <Panel title={text.list} note={text.about}>
        <div className="stack-3">
          {!monitored && <p className="quiet">{text.notWatched}</p>}
          <Loaded query={alerts}>
            {({ alerts: rows }) =>
              rows.length === 0 ? (
                <p className="quiet">{text.none}</p>
              ) : (
                <ul className="alert-list">
                  {rows.map(alert => (
                    <AlertLine key={alert.id} slug={slug} alert={alert} isAdmin={isAdmin} />
                  ))}
                </ul>
              )
            }
          </Loaded>
        </div>
      </Panel>
      <Panel title={text.add}>{isAdmin ? <AlertForm slug={slug} /> : <p className="quiet">{ask}</p>}</Panel>
    </div>
  )
}

function AlertLine({ slug, alert, isAdmin }: { readonly slug: string; readonly alert: Alert; readonly isAdmin: boolean }) {
  const { id, metric, threshold, channel, target, firing, heard } = alert
  const remove = useMutation({
    mutationFn: () => api('deleteAlert', { path: { slug, id } }),
    onSuccess: async () => {
      await invalidate('listAlerts')
      toast(text.removed)
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
  return (
    <li>
      <div>
        <p>{text.when(metric, threshold)}</p>
        <p className="quiet">
          {text.to(channel, target)}
          {!heard && ` · ${text.unheard}`}
        </p>
      </div>
      <Status tone={firing ? 'bad' : 'good'}>{firing ? text.firing : text.quiet}</Status>
      {isAdmin && (
        <Button size="sm" icon="trash" aria-label={`${text.remove}: ${text.when(metric, threshold)}`} isBusy={remove.isPending} onClick={() => remove.mutate()}>
          {text.remove}
        </Button>
      )}
    </li>
  )
}
