import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import { routingChanged } from '../routing/use-chains.ts'
import { type Collection, collectionsQuery } from './search.ts'
import { text } from './text.ts'

export type CollectionChanges = CallOptions<'changeCollection'>['body']

/** Returns the collections of the organisation, in the pages that were read so far. */
export const useCollections = () => useInfiniteQuery({ ...collectionsQuery, select: data => data.pages.flatMap(({ collections }) => collections) })

/** Returns the public collections with the most stars. */
export const usePublicCollections = () => useQuery({ ...apiQuery('listPublicCollections'), select: ({ collections }) => collections })

/** Reads again what pages show of collections. */
export const collectionsChanged = (): Promise<void> => invalidate('listCollections', 'getCollection', 'listPublicCollections', 'getPublicCollection')

/** Changes a collection. Another name, model, steps or readme make the next version. */
export function useChangeCollection(id: number, onDone: (changed: Collection) => void) {
  return useMutation({
    mutationFn: (body: CollectionChanges) => api('changeCollection', { path: { id }, body }),
    onSuccess: async changed => {
      await collectionsChanged()
      onDone(changed)
    },
  })
}

/** Gives the star of the organisation, or takes it back. */
export function useStar(slug: string) {
  return useMutation({
    mutationFn: (starred: boolean) => api('starCollection', { path: { slug }, body: { starred } }),
    onSuccess: async ({ starred }) => {
      await collectionsChanged()
      toast(starred ? text.starred : text.unstarred)
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** Copies a collection into the organisation. */
export function useFork(slug: string, onDone: (fork: Collection) => void) {
  return useMutation({
    mutationFn: () => api('forkCollection', { path: { slug } }),
    onSuccess: async fork => {
      await collectionsChanged()
      toast(text.forked(fork.name))
      onDone(fork)
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** Makes a collection the routing of its model. */
export function useImport(slug: string, onDone: () => void) {
  return useMutation({
    mutationFn: () => api('importCollection', { path: { slug } }),
    onSuccess: async ({ model }) => {
      await Promise.all([collectionsChanged(), routingChanged()])
      toast(text.imported(model))
      onDone()
    },
  })
}
