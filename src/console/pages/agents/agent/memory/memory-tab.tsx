import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { apiErrorOf } from '../../../../api/api-error.ts'
import { api, type ReplyOf } from '../../../../api/call.ts'
import type { Column } from '../../../../ui/data/table.tsx'
import { Time } from '../../../../ui/data/time.tsx'
import { VirtualTable } from '../../../../ui/data/virtual-table.tsx'
import { bytesText, count } from '../../../../ui/format/numbers.ts'
import { Empty } from '../../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../../ui/layout/panel.tsx'
import type { TabProps } from '../../agent-tabs.ts'
import { text } from '../text.ts'
import { Changes } from './changes.tsx'

type Entry = ReplyOf<'listConsole'>['keys'][number]

const pageSize = 50

const columns: readonly Column<Entry>[] = [
  {
    key: 'key',
    head: 'Key',
    isName: true,
    cell: ({ key }) => (
      <Link to="/memory/$" params={{ _splat: key }} className="cell-link memory-key">
        {key}
      </Link>
    ),
  },
  { key: 'modified', head: 'Written', cell: ({ modified }) => <Time at={modified} /> },
  { key: 'size', head: 'Size', align: 'end', isOnCards: false, cell: ({ size }) => <span title={`${count(size)} bytes`}>{bytesText(size)}</span> },
  { key: 'for', head: 'For', isOnCards: false, cell: ({ author_name: name }) => name ?? <span className="quiet">–</span> },
  {
    key: 'versions',
    head: text.memoryVersions,
    align: 'end',
    isOnCards: false,
    cell: ({ key }) => (
      <Link to="/memory/$" params={{ _splat: key }} search={{ view: 'history' }} className="cell-link" aria-label={text.memoryVersionsOf(key)}>
        {text.memoryCompare}
      </Link>
    ),
  },
]

/** The objects whose last version the agent wrote. Each leads to its address in the memory. */
export function MemoryTab({ agent }: TabProps) {
  const entries = useInfiniteQuery({
    queryKey: ['listConsole', 'author', agent.id],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listConsole', { query: { author: `agent:${agent.id}`, limit: pageSize, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    select: (data: InfiniteData<ReplyOf<'listConsole'>>) => data.pages.flatMap(({ keys }) => keys),
  })
  const isOff = entries.isError && apiErrorOf(entries.error).code === 'memory_not_configured'
  if (isOff)
    return (
      <Panel title={text.memory} isFlush>
        <Empty icon="memory" title={text.memoryOff}>
          {text.memoryOffHint}
        </Empty>
      </Panel>
    )
  const isEmpty = entries.data?.length === 0 && !entries.hasNextPage
  return (
    <>
      {entries.data && !isEmpty && <Changes agentId={agent.id} />}
      <Panel title={text.memory} note={text.memoryNote} isFlush>
        <Loaded query={entries}>
          {rows =>
            isEmpty ? (
              <Empty icon="memory" title={text.memoryEmpty} command={`npx brigade memory put agents/${agent.name}/notes.md --text "Prefers short answers."`}>
                {text.memoryHint}
              </Empty>
            ) : (
              <>
                <p className="agent-hint">{text.written}</p>
                <VirtualTable
                  isCompact
                  label={text.memory}
                  columns={columns}
                  rows={rows}
                  rowKey={({ key }) => key}
                  onMore={entries.hasNextPage ? () => void entries.fetchNextPage() : null}
                  isLoadingMore={entries.isFetchingNextPage}
                />
              </>
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}
