import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type ReplyOf } from '../../../api/call.ts'
import { apiQuery, invalidate, queryClient } from '../../../api/queries.ts'
import { Status } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { count, percent } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Check } from '../../../ui/forms/check.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { duration } from '../../playground/text.ts'
import type { WholeCollection } from '../search.ts'
import { oneText } from '../text.ts'
import { collectionsChanged } from '../use-collections.ts'

type StepHealth = ReplyOf<'collectionHealth'>['health'][number]

interface HealthTabProps {
  readonly collection: WholeCollection
  readonly isAdmin: boolean
  readonly ask: string
}

/** How the steps did in the last seven days, by canaries. Everybody may send them now, and admins let the gateway send them again and again. */
export function HealthTab({ collection: { slug, monitored }, isAdmin, ask }: HealthTabProps) {
  const health = useQuery(apiQuery('collectionHealth', { path: { slug } }))
  const check = useMutation({
    mutationFn: () => api('checkCollection', { path: { slug } }),
    onSuccess: ({ checked, note, ok: _, ...found }) => {
      queryClient.setQueryData(apiQuery('collectionHealth', { path: { slug } }).queryKey, found)
      toast(checked ? oneText.checked : note, checked ? 'good' : 'bad')
    },
  })
  const monitor = useMutation({
    mutationFn: (isOn: boolean) => api('monitorCollection', { path: { slug }, body: { monitored: isOn } }),
    onSuccess: async ({ note }) => {
      await Promise.all([collectionsChanged(), invalidate('collectionHealth')])
      toast(note)
    },
  })
  const failed = check.error ?? monitor.error
  return (
    <>
      <Panel>
        <div className="stack-3">
          <div className="health-acts">
            {isAdmin ? (
              <Check
                label={oneText.monitor}
                hint={oneText.monitorHint}
                isChecked={monitor.isPending ? monitor.variables : monitored}
                onChange={isOn => !monitor.isPending && monitor.mutate(isOn)}
              />
            ) : (
              <p className="quiet">{ask}</p>
            )}
            <Button icon="play" isBusy={check.isPending} onClick={() => check.mutate()}>
              {oneText.check}
            </Button>
          </div>
          {failed && <InlineError error={apiErrorOf(failed)} />}
        </div>
      </Panel>
      <Panel title={oneText.health} note={oneText.healthAbout} isFlush>
        <Loaded query={health}>
          {found => (
            <Table label={oneText.health} columns={columns} rows={found.health.map((step, place) => ({ ...step, place }))} rowKey={({ place }) => place} />
          )}
        </Loaded>
      </Panel>
    </>
  )
}

const columns: readonly Column<StepHealth>[] = [
  {
    key: 'step',
    head: oneText.columns.step,
    isName: true,
    cell: ({ model, provider }) => (
      <span className="cell-stack">
        <code>{model}</code>
        {provider !== null && <span className="quiet">{provider}</span>}
      </span>
    ),
  },
  {
    key: 'state',
    head: oneText.columns.state,
    cell: ({ state, last_code: code }) => (
      <span className="cell-stack">
        <Status tone={oneText.states[state].tone}>{oneText.states[state].name}</Status>
        {code !== null && state === 'failing' && <span className="quiet">{code.replaceAll('_', ' ')}</span>}
      </span>
    ),
  },
  {
    key: 'uptime',
    head: oneText.columns.uptime,
    align: 'end',
    cell: ({ uptime }) => (uptime === null ? <span className="quiet">–</span> : <span className="tabular">{percent(uptime)}</span>),
  },
  {
    key: 'p95',
    head: oneText.columns.p95,
    align: 'end',
    isOnCards: false,
    cell: ({ p95_ms: ms }) => (ms === null ? <span className="quiet">–</span> : <span className="tabular">{duration(ms)}</span>),
  },
  { key: 'checks', head: oneText.columns.checks, align: 'end', isOnCards: false, cell: ({ checks }) => <span className="tabular">{count(checks)}</span> },
  { key: 'last', head: oneText.columns.last, align: 'end', isOnCards: false, cell: ({ last_check: at }) => <Time at={at} /> },
]
