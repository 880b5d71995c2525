import { type InfiniteData, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, type ReplyOf } from '../../../api/call.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Money } from '../../../ui/data/money.tsx'
import type { Column } from '../../../ui/data/table.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Choice } from '../../../ui/forms/list-filters.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { latencyText } from '../../activity/latency.ts'
import { ClockTime, callerOf } from '../../calls/calls-table.tsx'
import { OutcomeWord } from '../../calls/outcome.tsx'
import { type Call, outcomeNames, outcomes } from '../../calls/text.ts'
import type { ToolsSearch } from '../search.ts'
import { text } from '../text.ts'
import { useToolServers } from '../use-tools.ts'

const pageSize = 50
const providerPrefix = 'mcp:'

const columns: readonly Column<Call>[] = [
  {
    key: 'tool',
    head: text.calls.columns.tool,
    isName: true,
    cell: ({ model, provider }) => (
      <span className="cell-stack">
        <MiddleCut text={model} max={40} />
        <span className="quiet">{provider.startsWith(providerPrefix) ? provider.slice(providerPrefix.length) : provider}</span>
      </span>
    ),
  },
  { key: 'time', head: text.calls.columns.time, cell: ({ at }) => <ClockTime at={at} /> },
  {
    key: 'caller',
    head: text.calls.columns.caller,
    isOnCards: false,
    cell: call => (
      <span className="cell-stack">
        <MiddleCut text={callerOf(call) ?? '–'} max={24} />
        <span className="quiet">
          <MiddleCut text={call.key_name ?? '–'} max={26} />
        </span>
      </span>
    ),
  },
  { key: 'latency', head: text.calls.columns.latency, align: 'end', isOnCards: false, cell: ({ latency_ms: ms }) => latencyText(ms) },
  { key: 'outcome', head: text.calls.columns.outcome, cell: ({ outcome }) => <OutcomeWord outcome={outcome} /> },
  { key: 'price', head: text.calls.columns.price, align: 'end', cell: ({ value_inr: inr }) => <Money inr={inr} /> },
]

interface CallsTabProps {
  readonly search: ToolsSearch
  readonly onShow: (search: ToolsSearch) => void
}

function useToolCalls({ server, outcome }: ToolsSearch) {
  const filter = {
    kind: 'tool' as const,
    ...(server === undefined ? {} : { provider: providerPrefix + server }),
    ...(outcome === undefined ? {} : { outcome }),
  }
  return useInfiniteQuery({
    queryKey: ['activityEvents', 'tools', filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('activityEvents', { query: { limit: pageSize, ...filter, ...(pageParam === undefined ? {} : { before: pageParam }) }, signal }),
    getNextPageParam: page => page.next_before ?? undefined,
    placeholderData: keepPreviousData,
    select: (data: InfiniteData<ReplyOf<'activityEvents'>>) => data.pages.flatMap(({ events }) => events),
  })
}

/** The calls of tools, newest first. The gateway filters them. */
export function CallsTab({ search, onShow }: CallsTabProps) {
  const calls = useToolCalls(search)
  const servers = useToolServers()
  const toCall = useNavigate()
  const isFiltered = search.server !== undefined || search.outcome !== undefined
  const set = (change: { readonly server?: string | undefined; readonly outcome?: ToolsSearch['outcome'] | undefined }): void => {
    const { server, outcome } = { ...search, ...change }
    onShow({ tab: 'calls', ...(server === undefined ? {} : { server }), ...(outcome === undefined ? {} : { outcome }) })
  }
  const slugs = new Set([...(search.server === undefined ? [] : [search.server]), ...(servers.data ?? []).map(({ slug }) => slug)])
  return (
    <>
      <search className="list-filters">
        <Choice label={text.calls.server} value={search.server ?? ''} onChange={slug => set({ server: slug === '' ? undefined : slug })}>
          <option value="">{text.calls.anyServer}</option>
          {[...slugs].map(slug => (
            <option key={slug} value={slug}>
              {slug}
            </option>
          ))}
        </Choice>
        <Choice label={text.calls.outcome} value={search.outcome ?? ''} onChange={chosen => set({ outcome: outcomeNames.find(name => name === chosen) })}>
          <option value="">{text.calls.anyOutcome}</option>
          {outcomeNames.map(name => (
            <option key={name} value={name}>
              {outcomes[name].word}
            </option>
          ))}
        </Choice>
        <span className="list-total">{text.calls.note}</span>
      </search>
      <Panel isFlush>
        <Loaded query={calls} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length === 0 && !calls.hasNextPage ? (
              isFiltered ? (
                <Empty icon="search" title={text.calls.none} action={<Button onClick={() => onShow({ tab: 'calls' })}>{text.calls.clear}</Button>}>
                  {text.calls.noneHint}
                </Empty>
              ) : (
                <Empty icon="list" title={text.calls.empty}>
                  {text.calls.emptyHint}
                </Empty>
              )
            ) : (
              <VirtualTable
                label={text.tabs.calls}
                columns={columns}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={({ request_id: call }) => void toCall({ to: '/calls', search: { kind: 'tool', call } })}
                onMore={calls.hasNextPage ? () => void calls.fetchNextPage() : null}
                isLoadingMore={calls.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}
