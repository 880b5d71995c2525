import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import { api, type ReplyOf } from '../../../api/call.ts'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { ErrorPanel } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { crumbsOf, type Places } from '../places.ts'
import type { MemorySearch } from '../search-params.ts'
import { text } from '../text.ts'
import { searchText } from './text.ts'

type Match = ReplyOf<'searchMemoryConsole'>['matches'][number]

/** Lines that one step finds before it waits for the person. */
const linesOfStep = 50
/** Requests of one step. Each does a bounded amount of work, so a rare word in a large memory takes several steps. */
const pagesOfStep = 5

interface SearchViewProps {
  readonly places: Places
  readonly search: MemorySearch
  readonly q: string
}

/** The lines that a search finds, while it goes on. It waits after some lines or some work, and says how far it came. */
export function SearchView({ places, search, q }: SearchViewProps) {
  const found = useSearch(search, q)
  const [steps, setSteps] = useState(1)
  const pages = found.data?.pages.length ?? 0
  const matches = useMemo(() => found.data?.pages.flatMap(page => page.matches) ?? [], [found.data])
  const scanned = sumOf(found.data)
  const mayGoOn = found.hasNextPage && !found.isError && pages < steps * pagesOfStep && matches.length < steps * linesOfStep
  const { fetchNextPage, isFetching } = found
  useEffect(() => {
    if (mayGoOn && !isFetching) void fetchNextPage()
  }, [mayGoOn, isFetching, fetchNextPage])
  const isRunning = found.isFetching || mayGoOn
  const isOver = !isRunning && !found.hasNextPage && !found.isError
  const keys = new Set(matches.map(({ key }) => key)).size
  return (
    <Page title={searchText.title(q)} above={<BackToAll />}>
      <Panel isFlush>
        <div className="memory-found" aria-live="polite">
          <span>
            {matches.length > 0 && `${searchText.found(matches.length, keys)} `}
            {searchText.scanned(scanned.objects, scanned.bytes)} {isRunning ? searchText.running : isOver && searchText.done}
          </span>
          {!isRunning && found.hasNextPage && (
            <Button size="sm" onClick={() => setSteps(steps + 1)}>
              {searchText.goOn}
            </Button>
          )}
        </div>
        {found.isError ? (
          <ErrorPanel error={found.error} onRetry={() => void (pages === 0 ? found.refetch() : fetchNextPage())} />
        ) : matches.length > 0 ? null : isRunning ? (
          <Skeleton lines={4} />
        ) : (
          <Empty icon="search" title={isOver ? searchText.noneTitle : searchText.pausedTitle}>
            {isOver ? searchText.none : searchText.paused}
          </Empty>
        )}
        <Groups places={places} matches={matches} q={search.regex ? null : q} isCase={search.case ?? false} />
      </Panel>
    </Page>
  )
}

function BackToAll() {
  return (
    <nav aria-label="Folders above" className="crumbs">
      <Link to="/memory/$" params={{ _splat: '' }}>
        {text.title}
      </Link>
    </nav>
  )
}

type Data = InfiniteData<ReplyOf<'searchMemoryConsole'>>

function useSearch({ regex, case: isCase, in: prefix }: MemorySearch, q: string) {
  const query = {
    q,
    limit: linesOfStep,
    ...(regex ? { regex: 'true' as const } : {}),
    ...(isCase ? { case: 'true' as const } : {}),
    ...(prefix ? { prefix } : {}),
  }
  return useInfiniteQuery({
    queryKey: ['searchMemoryConsole', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) => api('searchMemoryConsole', { query: { ...query, ...(cursor === undefined ? {} : { cursor }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    refetchOnWindowFocus: false,
    // A search is not repeated because the person looks at a result and returns.
    staleTime: 60_000,
  })
}

function sumOf(data: Data | undefined): { objects: number; bytes: number } {
  const pages = data?.pages ?? []
  return pages.reduce((sum, { scanned }) => ({ objects: sum.objects + scanned.objects, bytes: sum.bytes + scanned.bytes }), { objects: 0, bytes: 0 })
}

interface GroupsProps {
  readonly places: Places
  readonly matches: readonly Match[]
  /** The text to mark. Null for an expression, which the browser would read in another way than the gateway. */
  readonly q: string | null
  readonly isCase: boolean
}

/** The lines, below the object that has them. */
function Groups({ places, matches, q, isCase }: GroupsProps) {
  const groups = Map.groupBy(matches, ({ key }) => key)
  return (
    <ul className="memory-matches">
      {[...groups].map(([key, lines]) => (
        <li key={key}>
          <div className="memory-match-head">
            <Link to="/memory/$" params={{ _splat: key }}>
              {crumbsOf(places, key)
                .map(({ label }) => label)
                .join(' / ')}
            </Link>
            <span className="quiet">
              <Time at={lines[0]?.modified ?? null} />
            </span>
          </div>
          <ul>
            {lines.map(({ line, snippet }) => (
              <li key={line}>
                <Link to="/memory/$" params={{ _splat: key }} search={{ view: 'source', line }} className="memory-match">
                  <span className="tabular quiet">
                    <span className="visually-hidden">Line </span>
                    {line}
                  </span>
                  <code>{q === null ? snippet : <Marked text={snippet} q={q} isCase={isCase} />}</code>
                </Link>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}

function Marked({ text: snippet, q, isCase }: { readonly text: string; readonly q: string; readonly isCase: boolean }) {
  const pattern = new RegExp(`(${q.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')})`, isCase ? '' : 'i')
  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a line have no other name.
  return snippet.split(pattern).map((part, place) => (place % 2 === 1 ? <mark key={place}>{part}</mark> : part))
}
