import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useMemo, useRef } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { useNow } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { FilterBar } from '../activity/filter-bar.tsx'
import { filtersOf, given, spanSearchOf, without } from '../activity/filters.ts'
import type { OwnFilter } from '../activity/own-filter.ts'
import { spanOf, spanText } from '../activity/span.ts'
import { CallPeek } from './call-peek.tsx'
import './calls.css'
import { callColumns } from './calls-table.tsx'
import { LiveSwitch } from './live-switch.tsx'
import { RefusedList } from './refused/refused-list.tsx'
import { type CallsSearch, queryOf } from './search.ts'
import { SearchBox } from './search-box.tsx'
import { type Call, kindNames, kinds, outcomeNames, outcomes, text } from './text.ts'
import { useCalls, useIsAtTop } from './use-calls.ts'

const route = getRouteApi('/calls')

const outcomeOptions = outcomeNames.map(value => ({ value, label: outcomes[value].word }))
const kindOptions = kindNames.map(value => ({ value, label: kinds[value] }))

const ownFilters = ({ outcome, kind }: CallsSearch): readonly OwnFilter[] => [
  { name: 'outcome', label: text.outcome, value: outcome, options: outcomeOptions },
  { name: 'kind', label: text.kind, value: kind, options: kindOptions },
]

/** The calls that reached a provider, or those that were refused before. */
export function CallsPage() {
  const search = route.useSearch()
  return search.refused === true ? <RefusedPage /> : <ReachedPage />
}

function useShow(): (next: object) => void {
  const navigate = route.useNavigate()
  return next => void navigate({ search: given(next) as CallsSearch, resetScroll: false })
}

function Which({ search, onShow }: { readonly search: CallsSearch; readonly onShow: (next: object) => void }) {
  return (
    <Segmented
      label={text.shown}
      value={search.refused === true ? 'refused' : 'reached'}
      options={[
        { value: 'reached', label: text.reached },
        { value: 'refused', label: text.refused },
      ]}
      onChange={which => onShow({ ...filtersOf(search), ...spanSearchOf(search), refused: which === 'refused' ? true : undefined })}
    />
  )
}

/** Counts of the calls that were refused before a provider was asked. */
function RefusedPage() {
  const search = route.useSearch()
  const show = useShow()
  const today = istDay(useNow())
  const span = spanOf(search, today)
  return (
    <Page title={text.title} intro={text.refusedIntro}>
      <FilterBar search={search} today={today} onChange={next => show({ ...next, refused: true })}>
        <Which search={search} onShow={show} />
      </FilterBar>
      <Panel isFlush>
        <RefusedList search={search} span={span} />
      </Panel>
    </Page>
  )
}

/** Single calls, newest first. One of them can be open beside the list. */
function ReachedPage() {
  const search = route.useSearch()
  const show = useShow()
  const today = istDay(useNow())
  const isAtTop = useIsAtTop()
  const isLive = search.live === true && isAtTop && search.request_id === undefined
  const calls = useCalls(queryOf(search, spanOf(search, today)), isLive)
  const rows = useMemo(() => calls.data?.pages.flatMap(({ events }) => events) ?? [], [calls.data])
  const open = (call: string | undefined): void => show({ ...search, call })
  const move = useMove(rows, search.call, open)
  const isFiltered = Object.keys(filtersOf(search)).length > 0 || search.outcome !== undefined || search.kind !== undefined
  // A page with filters may be short, or empty, before the end. Then a person says whether to look further.
  const isSparse = isFiltered && calls.data?.pages.at(-1)?.events.length === 0
  const more = calls.hasNextPage ? () => void calls.fetchNextPage() : null
  return (
    <Page title={text.title} intro={text.intro}>
      <FilterBar
        search={search}
        today={today}
        own={ownFilters(search)}
        onChange={(next, own) => {
          const { outcome, kind, live } = search
          show({ outcome, kind, live, ...own, ...next })
        }}
      >
        <Which search={search} onShow={show} />
        <SearchBox
          value={search.request_id ?? ''}
          onSearch={id => (id !== (search.request_id ?? '') ? show({ ...without(search, 'call'), request_id: id === '' ? undefined : id }) : undefined)}
        />
        <LiveSwitch isOn={search.live === true} isWaiting={!isAtTop} onChange={isOn => show({ ...search, live: isOn ? true : undefined })} />
      </FilterBar>
      <Panel isFlush>
        <Loaded query={calls} skeleton={<Skeleton lines={8} height={28} />}>
          {() =>
            rows.length === 0 ? (
              <Nothing
                search={search}
                span={spanText(spanOf(search, today))}
                isFiltered={isFiltered}
                isLooking={calls.isFetchingNextPage}
                onContinue={more}
                onClear={() => show({ ...spanSearchOf(search), live: search.live })}
              />
            ) : (
              <div className="calls" aria-busy={calls.isPlaceholderData}>
                <VirtualTable
                  label={text.title}
                  columns={callColumns}
                  rows={rows}
                  rowKey={({ id }) => id}
                  onOpen={({ request_id: id }) => open(id)}
                  isOpen={({ request_id: id }) => id === search.call}
                  onMore={isSparse ? null : more}
                  isLoadingMore={calls.isFetchingNextPage}
                />
                {isSparse && more && (
                  <p className="calls-continue">
                    {text.continueBelow}
                    <Button size="sm" isBusy={calls.isFetchingNextPage} onClick={more}>
                      {text.continueAct}
                    </Button>
                  </p>
                )}
              </div>
            )
          }
        </Loaded>
      </Panel>
      {search.call !== undefined && (
        <CallPeek
          requestId={search.call}
          title={rows.find(({ request_id: id }) => id === search.call)?.model}
          onNext={move.next}
          onPrevious={move.previous}
          onClose={() => open(undefined)}
        />
      )}
    </Page>
  )
}

/** Returns the moves from the open call to its neighbours, and offers them under `j` and `k` while a call is open. */
function useMove(rows: readonly Call[], id: string | undefined, open: (id: string) => void) {
  const at = id === undefined ? -1 : rows.findIndex(({ request_id: one }) => one === id)
  // A request can have several calls, which are one entry beside the list.
  const next = at === -1 ? undefined : rows.slice(at).find(({ request_id: one }) => one !== id)?.request_id
  const previous = at === -1 ? undefined : rows[at - 1]?.request_id
  // biome-ignore lint/correctness/useExhaustiveDependencies: `open` changes only what the address says, which `id` follows.
  const commands = useMemo(
    () => [
      ...(next === undefined ? [] : [{ id: 'next-call', label: text.next, group: text.title, icon: 'down' as const, keys: 'j', run: () => open(next) }]),
      ...(previous === undefined
        ? []
        : [{ id: 'previous-call', label: text.previous, group: text.title, icon: 'up' as const, keys: 'k', run: () => open(previous) }]),
    ],
    [next, previous],
  )
  usePageCommands(commands)
  const shown = useRef<HTMLElement | null>(null)
  useEffect(() => {
    // The focus returns to the row of the call that was open last, which is not the one that was opened first.
    if (id === undefined) shown.current?.focus({ preventScroll: true })
    shown.current = id === undefined ? null : document.querySelector('tr[data-open]')
    shown.current?.scrollIntoView({ block: 'nearest' })
  }, [id])
  return { next: next === undefined ? null : () => open(next), previous: previous === undefined ? null : () => open(previous) }
}

interface NothingProps {
  readonly search: CallsSearch
  readonly span: string
  readonly isFiltered: boolean
  readonly isLooking: boolean
  readonly onContinue: (() => void) | null
  readonly onClear: () => void
}

function Nothing({ search, span, isFiltered, isLooking, onContinue, onClear }: NothingProps) {
  if (search.request_id !== undefined)
    return (
      <Empty icon="search" title={text.noMatchTitle} action={<Button onClick={onClear}>{text.clearSearch}</Button>}>
        {text.noRequest}
      </Empty>
    )
  if (onContinue)
    return (
      <Empty
        icon="search"
        title={text.continueTitle}
        action={
          <Button look="primary" isBusy={isLooking} onClick={onContinue}>
            {text.continueAct}
          </Button>
        }
      >
        {text.continueHint}
      </Empty>
    )
  if (isFiltered)
    return (
      <Empty icon="search" title={text.noMatchTitle} action={<Button onClick={onClear}>{text.clear}</Button>}>
        {text.noMatch}
      </Empty>
    )
  return (
    <Empty
      icon="list"
      title={text.emptyTitle(span)}
      action={
        <LinkButton look="primary" icon="play" to="/start">
          {text.start}
        </LinkButton>
      }
    >
      {text.empty}
    </Empty>
  )
}
