import { type InfiniteData, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useCallback } from 'react'
import { api, type ReplyOf } from '../../api/call.ts'
import { Money } from '../../ui/data/money.tsx'
import { Status } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { DateOnly } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { type HealthSearch, orgSorts } from './search.ts'
import { type Organisation, organisationWords, text } from './text.ts'

const route = getRouteApi('/health')
const pageSize = 50

function useOrganisations(filters: HealthSearch) {
  return useInfiniteQuery({
    queryKey: ['operatorOrganisations', 'pages', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('operatorOrganisations', { query: { limit: pageSize, ...filters, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    select: ({ pages }: InfiniteData<ReplyOf<'operatorOrganisations'>>) => ({
      rows: pages.flatMap(({ organisations }) => organisations),
      from: pages[0]?.from ?? '',
      to: pages[0]?.to ?? '',
    }),
  })
}

const columns: readonly Column<Organisation>[] = [
  {
    key: 'name',
    head: 'Name',
    isName: true,
    cell: ({ name, id }) => (
      <span className="cell-stack">
        {name}
        <span className="quiet">id {id}</span>
      </span>
    ),
  },
  { key: 'state', head: 'State', cell: ({ state }) => <Status tone={organisationWords[state].tone}>{organisationWords[state].name}</Status> },
  { key: 'members', head: 'Members', align: 'end', isOnCards: false, cell: ({ member_count: members }) => count(members) },
  { key: 'calls', head: 'Calls', align: 'end', cell: ({ calls }) => count(calls) },
  { key: 'value', head: 'Value', align: 'end', cell: ({ value_inr: inr }) => <Money inr={inr} /> },
  { key: 'cost', head: 'Cost', align: 'end', isOnCards: false, cell: ({ cost_inr: inr }) => <Money inr={inr} /> },
  { key: 'created', head: 'Created', isOnCards: false, cell: ({ created_at: at }) => <DateOnly at={at} /> },
]

/** The organisations of the installation. The gateway searches, sorts and pages them. */
export function OrganisationsPanel() {
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const filter = useCallback(
    (changes: HealthSearch) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const search = useCallback((q: string) => filter({ q }), [filter])
  const list = useOrganisations(filters)
  return (
    <>
      <search className="list-filters">
        <SearchBox label={text.search} hint={text.searchHint} value={filters.q ?? ''} onChange={search} />
        <Choice label={text.sort} value={filters.sort ?? 'newest'} onChange={value => filter({ sort: orgSorts.find(one => one === value) ?? 'newest' })}>
          {orgSorts.map(sort => (
            <option key={sort} value={sort}>
              {text.sorts[sort]}
            </option>
          ))}
        </Choice>
      </search>
      <Panel title={text.organisations} note={list.data ? text.organisationsNote(list.data.from, list.data.to) : ''} isFlush>
        <Loaded query={list} skeleton={<Skeleton lines={4} height={28} />}>
          {({ rows }) =>
            rows.length === 0 && !list.hasNextPage ? (
              <Empty icon="search" title={text.noneTitle} action={<Button onClick={() => filter({ q: '' })}>{text.clear}</Button>}>
                {text.none}
              </Empty>
            ) : (
              <VirtualTable
                label={text.organisations}
                columns={columns}
                rows={rows}
                rowKey={({ id }) => id}
                onMore={list.hasNextPage ? () => void list.fetchNextPage() : null}
                isLoadingMore={list.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}
