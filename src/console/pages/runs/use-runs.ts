import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'
import { ownerOf, type Run, type RunsSearch, runsQuery } from './search.ts'

export type WholeRun = ReplyOf<'getRunConsole'>
export type CapChanges = CallOptions<'changeRunConsole'>['body']

/** Returns the runs that the filters choose, in the pages that were read so far. */
export function useRuns(filters: RunsSearch) {
  return useInfiniteQuery({ ...runsQuery(filters), placeholderData: keepPreviousData, select: data => data.pages.flatMap(({ runs }) => runs) })
}

/** Returns one run with its parts. */
export const useRun = (id: string, owner: { readonly agent_id?: number; readonly key_id?: number }) =>
  useQuery(apiQuery('getRunConsole', { path: { id }, query: owner }))

/** Reads again what pages show of runs. */
export const runsChanged = (): Promise<void> => invalidate('listRunsConsole', 'getRunConsole', 'listBudgetRequestsConsole')

/** Gives a run caps of its own. Only the fields that are given are sent. */
export function useChangeCaps(run: Run, onDone: (run: Run) => void) {
  return useMutation({
    mutationFn: (body: CapChanges) => api('changeRunConsole', { path: { id: run.run_id }, query: ownerOf(run), body }),
    onSuccess: async changed => {
      await runsChanged()
      onDone(changed)
    },
  })
}

const foundMax = 20

/** Finds agents by a part of their name. */
export async function findAgents(words: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = words.trim()
  const { agents } = await api('listAgentsConsole', { query: { limit: foundMax, ...(q === '' ? {} : { q }) }, signal })
  return agents.map(({ id, name }) => ({ value: String(id), label: name, hint: `id ${id}` }))
}
