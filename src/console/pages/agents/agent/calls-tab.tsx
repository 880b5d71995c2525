import { type InfiniteData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { api, type ReplyOf } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Money } from '../../../ui/data/money.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { count, shortCount } from '../../../ui/format/numbers.ts'
import { Segmented } from '../../../ui/forms/choices.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { latencyText } from '../../activity/latency.ts'
import { ClockTime, kindText } from '../../calls/calls-table.tsx'
import { OutcomeWord } from '../../calls/outcome.tsx'
import type { TabProps } from '../agent-tabs.ts'
import { text } from './text.ts'

type Call = ReplyOf<'activityEvents'>['events'][number]

const route = getRouteApi('/agents/$id')
const lastMax = 10
const pageSize = 50

const columns: readonly Column<Call>[] = [
  {
    key: 'model',
    head: 'Model',
    isName: true,
    cell: ({ model, provider }) => (
      <span className="cell-stack">
        <MiddleCut text={model} max={34} />
        <span className="quiet">{provider}</span>
      </span>
    ),
  },
  { key: 'at', head: 'Time', cell: ({ at }) => <ClockTime at={at} /> },
  { key: 'outcome', head: 'Outcome', cell: ({ outcome }) => <OutcomeWord outcome={outcome} /> },
  { key: 'kind', head: 'Kind', isOnCards: false, cell: ({ kind }) => kindText(kind) },
  { key: 'tokens', head: 'Tokens', align: 'end', isOnCards: false, cell: ({ tokens }) => <span title={count(tokens)}>{shortCount(tokens)}</span> },
  {
    key: 'time',
    head: 'Latency',
    align: 'end',
    isOnCards: false,
    cell: ({ latency_ms: ms, first_byte_ms: first }) => (
      <span className="nowrap" title={first === null ? undefined : `First byte after ${latencyText(first)}`}>
        {latencyText(ms)}
      </span>
    ),
  },
  { key: 'value', head: 'Value', align: 'end', cell: ({ value_inr: inr }) => <Money inr={inr} /> },
]

/** Opens a call beside the calls of the agent, with the routes that it tried. */
function useOpenCall(agentId: number): (call: Call) => void {
  const toCalls = useNavigate()
  return ({ request_id: call }) => void toCalls({ to: '/calls', search: { agent_id: agentId, call } })
}

/** The newest calls on the overview. */
export function LastCalls({ agent, isMine }: TabProps) {
  const open = useOpenCall(agent.id)
  const calls = useQuery(apiQuery('activityEvents', { query: { agent_id: agent.id, limit: lastMax } }))
  const tabLink = (tab: 'calls' | 'tokens', label: string, look: 'plain' | 'primary') => (
    <Link to="/agents/$id" params={{ id: String(agent.id) }} search={{ tab }} className={`button button-${look} button-${look === 'plain' ? 'sm' : 'md'}`}>
      {label}
    </Link>
  )
  const hasCalls = (calls.data?.events.length ?? 0) > 0
  return (
    <Panel title={text.lastCalls} isFlush actions={hasCalls && tabLink('calls', text.allCalls, 'plain')}>
      <Loaded query={calls}>
        {({ events }) =>
          events.length === 0 ? (
            <Empty icon="terminal" title={text.noCalls} action={isMine && tabLink('tokens', text.makeToken, 'primary')}>
              {text.noCallsHint}
            </Empty>
          ) : (
            <Table isCompact label={text.lastCalls} columns={columns} rows={events} rowKey={({ id }) => id} onOpen={open} />
          )
        }
      </Loaded>
    </Panel>
  )
}

/** All calls that are kept, newest first, page by page. */
export function CallsTab({ agent }: TabProps) {
  const { outcome } = route.useSearch()
  const navigate = route.useNavigate()
  const open = useOpenCall(agent.id)
  const calls = useInfiniteQuery({
    queryKey: ['activityEvents', 'agent', agent.id, outcome ?? 'all'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('activityEvents', {
        query: {
          agent_id: agent.id,
          limit: pageSize,
          ...(outcome === undefined ? {} : { status: 'failed' as const }),
          ...(pageParam === undefined ? {} : { before: pageParam }),
        },
        signal,
      }),
    getNextPageParam: page => page.next_before ?? undefined,
    select: (data: InfiniteData<ReplyOf<'activityEvents'>>) => data.pages.flatMap(({ events }) => events),
  })
  return (
    <Panel
      title={text.calls}
      note={text.callsNote}
      isFlush
      actions={
        <Segmented
          label={text.outcome}
          value={outcome ?? 'all'}
          onChange={next =>
            void navigate({ search: next === 'failed' ? { tab: 'calls', outcome: 'failed' } : { tab: 'calls' }, replace: true, resetScroll: false })
          }
          options={[
            { value: 'all', label: text.all },
            { value: 'failed', label: text.failed },
          ]}
        />
      }
    >
      <Loaded query={calls}>
        {rows =>
          rows.length === 0 && !calls.hasNextPage ? (
            <Empty icon="list" title={text.callsEmpty}>
              {outcome === undefined ? text.noCallsHint : text.failedEmpty}
            </Empty>
          ) : (
            <VirtualTable
              isCompact
              label={text.calls}
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              onOpen={open}
              onMore={calls.hasNextPage ? () => void calls.fetchNextPage() : null}
              isLoadingMore={calls.isFetchingNextPage}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
