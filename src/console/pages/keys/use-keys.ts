import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'
import { type KeyFilterValues, keysQuery } from './filters/search.ts'

export type ApiKey = ReplyOf<'listKeys'>['keys'][number]
export type KeyChanges = CallOptions<'changeKey'>['body']

/** Returns the keys that the filters choose, in the pages that were read so far. */
export function useKeys(filters: KeyFilterValues) {
  return useInfiniteQuery({
    ...keysQuery(filters),
    placeholderData: keepPreviousData,
    select: data => data.pages.flatMap(({ keys }) => keys),
  })
}

/** Returns a function that names the member with an id. Until the members are read it returns the number. */
export function useMemberNames(ownId: number | null): (uid: number) => string {
  const members = useQuery(apiQuery('listMembers'))
  return uid => {
    if (uid === ownId) return 'You'
    const found = members.data?.members.find(({ id }) => id === uid)
    return found?.name ?? found?.email ?? `Member ${uid}`
  }
}

/** Changes a key. Only the fields that are given are sent. */
export function useChangeKey(onDone: (key: ApiKey) => void) {
  return useMutation({
    mutationFn: ({ id, changes }: { id: number; changes: KeyChanges }) => api('changeKey', { path: { id }, body: changes }),
    onSuccess: async ({ key }) => {
      await invalidate('listKeys', 'orgBudgets')
      onDone(key)
    },
  })
}

const foundMax = 20

/** Finds models by a part of their id. The list of models is one public document, which the browser keeps. */
export async function findModels(text: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const { data } = await api('listModels', { signal })
  const words = text.toLowerCase()
  return data
    .filter(({ id }) => id.toLowerCase().includes(words))
    .slice(0, foundMax)
    .map(({ id }) => ({ value: id, label: id }))
}

/** Finds active workspaces by a part of their name. */
export async function findWorkspaces(text: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = text.trim()
  const { workspaces } = await api('listWorkspaces', { query: { state: 'active', limit: foundMax, ...(q === '' ? {} : { q }) }, signal })
  return workspaces.map(({ id, name }) => ({ value: String(id), label: name }))
}
