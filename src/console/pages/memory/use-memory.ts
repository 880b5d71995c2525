import { type InfiniteData, keepPreviousData, queryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { readBytes } from '../../api/bytes.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { folderOf, isFixedFolder, type Places } from './places.ts'

export type Entry = ReplyOf<'listConsole'>['keys'][number]
export type Version = ReplyOf<'historyConsole'>['versions'][number]
export type Share = ReplyOf<'listSharesConsole'>['shares'][number]

/** Entries of a folder that the tree reads first. */
export const levelSize = 100
const folderPageSize = 100
const versionsPageSize = 50
const namesMax = 200

/** Returns the folders of the person with their names. */
export function usePlaces() {
  const paths = useQuery(apiQuery('pathsConsole'))
  const workspaces = useQuery({ ...apiQuery('listWorkspaces', { query: { limit: namesMax } }), enabled: (paths.data?.scopes.workspaces?.length ?? 0) > 0 })
  const names = workspaces.data?.workspaces
  const places = useMemo((): Places | undefined => {
    if (paths.data === undefined) return undefined
    const { user, workspaces: folders = [], shared = [] } = paths.data.scopes
    const idOf = (folder: string): string => folder.split('/')[1] ?? ''
    return {
      own: user,
      workspaces: folders.map(folder => ({ folder, name: names?.find(({ id }) => String(id) === idOf(folder))?.name ?? idOf(folder) })),
      spaces: shared.map(folder => folder.split('/')[1] ?? ''),
    }
  }, [paths.data, names])
  return { query: paths, places }
}

/** The folders and objects directly below a prefix, for the tree. */
export const levelQuery = (prefix: string, limit = levelSize) => ({
  ...apiQuery('listConsole', { query: { prefix, delimiter: '/', limit } }),
  placeholderData: keepPreviousData,
})

/** Returns the folders and objects directly below a prefix, in the pages that were read so far. */
export function useFolder(prefix: string) {
  return useInfiniteQuery({
    queryKey: ['listConsole', 'folder', prefix],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) =>
      api('listConsole', { query: { prefix, delimiter: '/', limit: folderPageSize, ...(cursor === undefined ? {} : { cursor }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    select: (data: InfiniteData<ReplyOf<'listConsole'>>) => ({
      folders: data.pages.flatMap(({ prefixes = [] }) => prefixes),
      keys: data.pages.flatMap(({ keys }) => keys),
    }),
  })
}

/** What is at a path. An object and a folder can have the same name: the path is then the object, and the tree has the folder. */
export type AtPath = 'object' | 'folder'

/** Returns what is at a path. The list of its folder says it, which the tree reads anyway. A path that is in no list is taken for an object. */
export function useAtPath(places: Places, path: string, isNew: boolean) {
  const isKnown = isNew || isFixedFolder(places, path)
  const above = useQuery({ ...levelQuery(folderOf(path)), enabled: !isKnown })
  const inList =
    above.data === undefined ? null : above.data.keys.some(({ key }) => key === path) ? 'object' : above.data.prefixes?.includes(`${path}/`) ? 'folder' : null
  const mustProbe = !isKnown && above.data !== undefined && !above.isPlaceholderData && inList === null
  const probe = useQuery({ ...apiQuery('listConsole', { query: { prefix: `${path}/`, delimiter: '/', limit: 1 } }), enabled: mustProbe })
  if (isNew) return { at: 'object' as const, failed: null }
  if (isKnown) return { at: 'folder' as const, failed: null }
  if (inList !== null && !above.isPlaceholderData) return { at: inList, failed: null }
  if (above.isError) return { at: null, failed: above }
  if (probe.isError) return { at: null, failed: probe }
  if (!mustProbe || probe.data === undefined) return { at: null, failed: null }
  return { at: probe.data.keys.length + (probe.data.prefixes?.length ?? 0) > 0 ? ('folder' as const) : ('object' as const), failed: null }
}

/** The bytes of an object or of one of its versions, with what the gateway knows of the write. */
export interface MemoryObject {
  readonly key: string
  /** Null when the bytes are not text. */
  readonly text: string | null
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string
  /** Headers of the write, by the name after `x-br-meta-`. */
  readonly meta: ReadonlyMap<string, string>
}

const metaPrefix = 'x-br-meta-'

/** Returns the address of the bytes of an object, or of one of its versions. */
export function bytesAddress(key: string, version: string | null = null): string {
  return version === null ? `/me/memory/o?${new URLSearchParams({ key })}` : `/me/memory/history?${new URLSearchParams({ key, version })}`
}

/**
 * Reads an object, or one of its versions. The name of the query begins with `memoryObject`. Neither hints nor polls read it again: a text does not change
 * under the eyes of a person, and the list of its versions says that it changed.
 */
export const objectQuery = (key: string, version: string | null = null) =>
  queryOptions({
    queryKey: ['memoryObject', key, version],
    queryFn: ({ signal }) => readObject(key, version, signal),
    ...(version === null ? {} : { staleTime: Number.POSITIVE_INFINITY }),
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    meta: { isPinned: true },
  })

/** Reads an object now, past the cache. */
export async function readObject(key: string, version: string | null = null, signal?: AbortSignal): Promise<MemoryObject> {
  const { bytes, headers } = await readBytes(bytesAddress(key, version), signal)
  const isText = headers.get('content-type')?.startsWith('text/') === true
  const meta = new Map([...headers].flatMap(([name, value]) => (name.startsWith(metaPrefix) ? [[name.slice(metaPrefix.length), value] as const] : [])))
  return { key, bytes, text: isText ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) : null, etag: headers.get('etag') ?? '', meta }
}

/** Returns the versions of a key in the pages that were read so far, newest first. */
export function useVersions(key: string, isOn = true) {
  return useInfiniteQuery({
    queryKey: ['historyConsole', key],
    enabled: isOn,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) =>
      api('historyConsole', { query: { key, limit: versionsPageSize, ...(cursor === undefined ? {} : { cursor }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    select: (data: InfiniteData<ReplyOf<'historyConsole'>>) => data.pages.flatMap(({ versions }) => versions),
  })
}

const memoryReads = ['memoryObject', 'listConsole', 'historyConsole', 'memoryUsageConsole', 'pathsConsole', 'listSharesConsole']

/** Reads again what pages show of memory, after something changed. */
export async function memoryChanged(): Promise<void> {
  await Promise.all(memoryReads.map(name => queryClient.invalidateQueries({ queryKey: [name] })))
}
