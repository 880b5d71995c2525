import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import type { Step } from '../steps/draft-steps.ts'
import { chainsQuery } from './search.ts'
import { chainText } from './text.ts'

/** Returns the chains that the search chooses, in the pages that were read so far. */
export const useChains = (search: { readonly q?: string }) =>
  useInfiniteQuery({ ...chainsQuery(search), placeholderData: keepPreviousData, select: data => data.pages.flatMap(({ chains }) => chains) })

/** Reads again what pages show of routing. */
export const routingChanged = (): Promise<void> => invalidate('listChains', 'getChain', 'previewRoute')

/** Returns the saved steps of a model. Null when it has no chain. */
export const useChain = (model: string) =>
  useQuery({
    queryKey: ['getChain', { path: { model } }],
    queryFn: async ({ signal }): Promise<readonly Step[] | null> => {
      try {
        return (await api('getChain', { path: { model }, signal })).steps
      } catch (error) {
        if (apiErrorOf(error).status === 404) return null
        throw error
      }
    },
  })

/** Saves the steps of a model. */
export function useSaveChain(model: string, onDone: (steps: readonly Step[]) => void) {
  return useMutation({
    mutationFn: (steps: readonly Step[]) => api('saveChain', { path: { model }, body: { steps } }),
    onSuccess: async ({ steps }) => {
      await routingChanged()
      toast(chainText.saved(model))
      onDone(steps)
    },
  })
}

/** Removes the chain of a model. */
export function useRemoveChain(model: string, onDone: () => void) {
  return useMutation({
    mutationFn: () => api('deleteChain', { path: { model } }),
    onSuccess: async () => {
      toast(chainText.removed(model))
      onDone()
      await routingChanged()
    },
  })
}
