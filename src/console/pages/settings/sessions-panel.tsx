import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { Status } from '../../ui/data/status.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { DateOnly, Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { sessionText as text } from './text.ts'

type Session = ReplyOf<'listSessions'>['sessions'][number]

/** The places where the person is signed in, in every organisation. */
export function SessionsPanel() {
  const sessions = useQuery(apiQuery('listSessions'))
  const [ending, setEnding] = useState<Session | 'others' | null>(null)
  const hasOthers = (sessions.data?.sessions.length ?? 0) > 1
  const columns: readonly Column<Session>[] = [
    {
      key: 'browser',
      head: text.columns.browser,
      isName: true,
      cell: ({ browser, current }) => (
        <span className="session-name">
          {text.browsers[browser ?? 'other']}
          {current && <Status tone="good">{text.current}</Status>}
        </span>
      ),
    },
    { key: 'org', head: text.columns.org, isOnCards: false, cell: ({ org }) => org.name },
    { key: 'created', head: text.columns.created, cell: ({ created_at: at }) => <DateOnly at={at} /> },
    { key: 'used', head: text.columns.used, cell: ({ last_used_at: at }) => <Time at={at} /> },
    { key: 'ends', head: text.columns.ends, isOnCards: false, cell: ({ expires_at: at }) => <DateOnly at={at} /> },
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: session =>
        !session.current && (
          <Button size="sm" onClick={() => setEnding(session)}>
            {text.end}
          </Button>
        ),
    },
  ]
  return (
    <Panel
      title={text.title}
      note={text.note}
      isFlush
      actions={
        hasOthers && (
          <Button size="sm" icon="leave" onClick={() => setEnding('others')}>
            {text.endOthers}
          </Button>
        )
      }
    >
      <Loaded query={sessions}>{data => <Table label={text.title} columns={columns} rows={data.sessions} rowKey={({ id }) => id} />}</Loaded>
      {ending !== null && <EndSessions ending={ending} onClose={() => setEnding(null)} />}
    </Panel>
  )
}

function EndSessions({ ending, onClose }: { readonly ending: Session | 'others'; readonly onClose: () => void }) {
  const end = useMutation({
    mutationFn: async () => {
      if (ending === 'others') return text.othersEnded((await api('endOtherSessions')).ended)
      await api('endSession', { path: { id: ending.id } })
      return text.ended
    },
    onSuccess: async said => {
      await invalidate('listSessions')
      toast(said)
      onClose()
    },
  })
  return (
    <Confirm
      title={ending === 'others' ? text.endOthers : text.endTitle}
      act={ending === 'others' ? text.endOthers : text.end}
      isBusy={end.isPending}
      error={end.error && apiErrorOf(end.error)}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p>{ending === 'others' ? text.othersAbout : text.endAbout(text.browsers[ending.browser ?? 'other'])}</p>
    </Confirm>
  )
}
