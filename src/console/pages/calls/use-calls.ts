import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ReplyOf } from '../../api/call.ts'
import { callsQuery, type Query } from './search.ts'

type Page = ReplyOf<'activityEvents'>

const liveMs = 4_000
/** A person who has scrolled further than this reads the list, so nothing may move. */
const topPx = 160

/** Returns the calls in the pages that were read so far. While it is live, the newest page is read again every few seconds. */
export function useCalls(query: Query, isLive: boolean) {
  const options = callsQuery(query)
  const client = useQueryClient()
  const calls = useInfiniteQuery({
    ...options,
    placeholderData: keepPreviousData,
    refetchInterval: isLive ? liveMs : false,
    // A list that a person reads must not move, so only Live reads it again.
    refetchOnWindowFocus: false,
  })
  const name = JSON.stringify(options.queryKey)
  useEffect(() => {
    if (!isLive) return
    // Reading many pages again every few seconds would cost much, and the newest are at the top anyway.
    const key = JSON.parse(name) as unknown[]
    client.setQueryData<InfiniteData<Page, string | undefined>>(key, data => data && { pages: data.pages.slice(0, 1), pageParams: data.pageParams.slice(0, 1) })
    void client.invalidateQueries({ queryKey: key })
  }, [isLive, name, client])
  return calls
}

/** Returns whether the page is scrolled to its top. */
export function useIsAtTop(): boolean {
  const [isAtTop, setAtTop] = useState(() => scrollY < topPx)
  useEffect(() => {
    const onScroll = (): void => setAtTop(scrollY < topPx)
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [])
  return isAtTop
}
