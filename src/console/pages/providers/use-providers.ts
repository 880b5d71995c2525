import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import type { ProviderRow } from './search.ts'
import { text } from './text.ts'

export type KeyBody = CallOptions<'saveProviderKey'>['body']

/** Reads again what pages show of providers, and of what depends on their keys. */
export const providersChanged = (): Promise<void> => invalidate('listProviderKeys', 'listProviderKeyModels', 'listProviders', 'listModels')

/** Returns all providers with the saved keys. `isOff` says that this gateway takes no keys of organisations. */
export function useProviders() {
  const all = useQuery(apiQuery('listProviders'))
  const own = useQuery(apiQuery('listProviderKeys'))
  const isOff = own.isError && apiErrorOf(own.error).code === 'byok_disabled'
  const rows = all.data !== undefined && (own.data !== undefined || isOff) ? rowsOf(all.data, own.data ?? { providers: [], keys: [] }) : undefined
  return { all, own, isOff, rows }
}

/** Own keys come first, then what works, then the rest by name. */
function rowsOf({ data }: ReplyOf<'listProviders'>, { providers, keys }: ReplyOf<'listProviderKeys'>): readonly ProviderRow[] {
  const accepting = new Map(providers.map(one => [one.id, one]))
  const saved = new Map(keys.map(one => [one.provider, one]))
  const rows = data.map(({ id, name, residency, configured, missing = [], untried = false }) => ({
    id,
    name,
    residency,
    isConfigured: configured,
    missing,
    isUntried: untried,
    accepting: accepting.get(id) ?? null,
    own: saved.get(id) ?? null,
  }))
  const rank = ({ own, isConfigured }: ProviderRow): number => (own !== null ? 0 : isConfigured ? 1 : 2)
  return rows.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
}

/** Saves a key, or what is named of a saved one. */
export function useSaveKey(provider: string, onDone: (saved: ReplyOf<'saveProviderKey'>) => void) {
  return useMutation({
    mutationFn: (body: KeyBody) => api('saveProviderKey', { path: { provider }, body }),
    onSuccess: async saved => {
      await providersChanged()
      onDone(saved)
    },
  })
}

/** Tries the saved key at its provider. */
export function useTestKey(provider: string) {
  return useMutation({
    mutationFn: () => api('testProviderKey', { path: { provider } }),
    onSuccess: () => providersChanged(),
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** Removes the saved key. */
export function useRemoveKey({ id, name }: Pick<ProviderRow, 'id' | 'name'>, onDone: () => void) {
  return useMutation({
    mutationFn: () => api('removeProviderKey', { path: { provider: id } }),
    onSuccess: async () => {
      await providersChanged()
      toast(text.removed(name))
      onDone()
    },
  })
}
