import { useInfiniteQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../../api/call.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { lazy } from '../../../ui/format/lazy.ts'
import { count } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Copy } from '../../../ui/forms/copy.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { type Span, spanText } from '../../activity/span.ts'
import { type CallsSearch, refusedQuery } from '../search.ts'
import { text } from '../text.ts'

type Refusal = ReplyOf<'listRefusedCallsConsole'>['refusals'][number]

const hourMs = 3600_000
const minutes = lazy(() => new Intl.DateTimeFormat('en-IN', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }))
const day = lazy(() => new Intl.DateTimeFormat('en-IN', { day: 'numeric', month: 'short' }))

/** An hour in the zone of the person, from its first minute to its last, with its day. */
function HourSpan({ at }: { readonly at: string }) {
  const begin = new Date(at)
  return (
    <time dateTime={at} title={exactTime(at)} className="cell-stack tabular nowrap">
      {`${minutes().format(begin)} – ${minutes().format(new Date(begin.getTime() + hourMs))}`}
      <span className="quiet">{day().format(begin)}</span>
    </time>
  )
}

const columns: readonly Column<Refusal>[] = [
  { key: 'hour', head: text.refusedColumns.hour, isName: true, cell: ({ hour }) => <HourSpan at={hour} /> },
  {
    key: 'caller',
    head: text.refusedColumns.caller,
    cell: ({ agent_id: id, agent_name: agent, key_name: key }) => (
      <span className="cell-stack">
        {id === null ? <span className="call-none">{text.noAgent}</span> : <MiddleCut text={agent ?? `Agent ${id}`} max={24} />}
        <span className="quiet">
          <MiddleCut text={key ?? text.noKey} max={26} />
        </span>
      </span>
    ),
  },
  {
    key: 'why',
    head: text.refusedColumns.why,
    cell: ({ code, status, reason, scope }) => (
      <span className="cell-stack refused-why">
        <span>
          <code>{code}</code>
          <span className="quiet">
            {status !== null && ` · ${text.status(String(status))}`}
            {scope !== null && ` · ${text.refusedScopes[scope] ?? scope}`}
          </span>
        </span>
        {reason !== null && <span className="quiet">{reason}</span>}
      </span>
    ),
  },
  { key: 'calls', head: text.refusedColumns.calls, align: 'end', cell: ({ calls }) => count(calls) },
  {
    key: 'last',
    head: text.refusedColumns.last,
    align: 'end',
    isOnCards: false,
    cell: ({ last_at: at, last_request_id: id }) => (
      <span className="refused-last">
        <Time at={at} />
        <Copy text={id} label={text.copyLast} />
      </span>
    ),
  },
]

interface RefusedListProps {
  readonly search: CallsSearch
  readonly span: Span
}

/** The refused calls of a span by hour, credential and reason, the latest hour first. */
export function RefusedList({ search, span }: RefusedListProps) {
  const refused = useInfiniteQuery(refusedQuery(search, span))
  const rows = refused.data?.pages.flatMap(({ refusals }) => refusals) ?? []
  return (
    <Loaded query={refused} skeleton={<Skeleton lines={8} height={28} />}>
      {() =>
        rows.length === 0 ? (
          <Empty icon="good" title={text.refusedEmptyTitle(spanText(span))}>
            {text.refusedEmpty}
          </Empty>
        ) : (
          <>
            <Table
              label={text.refused}
              columns={columns}
              rows={rows}
              rowKey={({ hour, key_id: key, agent_id: agent, code, status, scope }) => `${hour} ${key} ${agent} ${code} ${status} ${scope}`}
            />
            {refused.hasNextPage && (
              <p className="calls-continue">
                <Button size="sm" isBusy={refused.isFetchingNextPage} onClick={() => void refused.fetchNextPage()}>
                  {text.more}
                </Button>
              </p>
            )}
          </>
        )
      }
    </Loaded>
  )
}
