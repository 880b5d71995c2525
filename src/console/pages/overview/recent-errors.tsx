import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { MiddleCut } from '../../ui/data/code.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { OutcomeWord } from '../calls/outcome.tsx'
import { text } from './text.ts'

type Call = ReplyOf<'activityEvents'>['events'][number]

const shownMax = 5
const filter = { outcome: 'failed' } as const

const columns: readonly Column<Call>[] = [
  {
    key: 'model',
    head: 'Model',
    isName: true,
    cell: call => (
      <Link to="/calls" search={{ ...filter, call: call.request_id }} className="row-link">
        <MiddleCut text={call.model} max={32} />
      </Link>
    ),
  },
  { key: 'outcome', head: 'Outcome', cell: ({ outcome }) => <OutcomeWord outcome={outcome} /> },
  { key: 'status', head: 'Status', align: 'end', isOnCards: false, cell: ({ status }) => status },
  {
    key: 'caller',
    head: 'Agent or key',
    isOnCards: false,
    cell: ({ agent_name: agent, key_name: key }) => <MiddleCut text={agent ?? key ?? text.noKey} max={28} />,
  },
  { key: 'at', head: 'When', align: 'end', cell: ({ at }) => <Time at={at} /> },
]

/** The calls that failed last. Each one leads to its page, with the routes that it tried. */
export function RecentErrors() {
  const navigate = useNavigate()
  const events = useQuery(apiQuery('activityEvents', { query: { status: 'failed', limit: shownMax } }))
  return (
    <Panel
      title={text.recentErrors}
      isFlush
      actions={
        <Link to="/calls" search={filter} className="button button-plain button-sm">
          {text.allErrors}
        </Link>
      }
    >
      <Loaded query={events}>
        {data =>
          data.events.length === 0 ? (
            <p className="quiet panel-text">{text.noErrors}</p>
          ) : (
            <Table
              isCompact
              label={text.recentErrors}
              columns={columns}
              rows={data.events}
              rowKey={({ id }) => id}
              onOpen={({ request_id: call }) => void navigate({ to: '/calls', search: { ...filter, call } })}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
