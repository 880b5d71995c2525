import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'

/** What the addresses of the pages of collections say, and what the list asks for. */

export const collectionsTabs = ['own', 'public'] as const
export type CollectionsTab = (typeof collectionsTabs)[number]

export interface CollectionsSearch {
  readonly tab?: 'public'
  /** The public collection that is open beside the list. */
  readonly slug?: string
  readonly new?: true
}

export const oneTabs = ['steps', 'versions', 'health', 'alerts'] as const
export type OneTab = (typeof oneTabs)[number]

/** What the address of one collection says. */
export interface OneSearch {
  readonly tab?: Exclude<OneTab, 'steps'>
  /** The version that is compared with the present one. */
  readonly version?: number
}

export type Collection = ReplyOf<'listCollections'>['collections'][number]
export type PublicCollection = ReplyOf<'listPublicCollections'>['collections'][number]
export type WholeCollection = ReplyOf<'getCollection'>

const pageSize = 50

/** Reads the collections of the organisation, a page at a time. */
export const collectionsQuery = infiniteQueryOptions({
  queryKey: ['listCollections', 'pages'],
  initialPageParam: '',
  queryFn: ({ pageParam, signal }) => api('listCollections', { query: { limit: pageSize, ...(pageParam === '' ? {} : { cursor: pageParam }) }, signal }),
  getNextPageParam: page => page.next_cursor ?? undefined,
})
