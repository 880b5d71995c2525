import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { clientOf } from '../connect/text.ts'
import { type KeysSearch, keySorts, keyStates, keysQuery } from './filters/search.ts'

const queryMax = 100
const idOf = (value: unknown): number | null => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : null)
const ownerOf = (value: unknown): string | undefined => (value === 'me' || idOf(value) !== null ? String(value) : undefined)

export const keysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/keys',
  validateSearch: (search: Record<string, unknown>): KeysSearch => {
    const key = idOf(search['key'])
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = keyStates.find(one => one === search['state'])
    const sort = keySorts.find(one => one === search['sort'])
    const connect = clientOf(search['connect'])
    const owner = ownerOf(search['owner'])
    return {
      ...(q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(owner === undefined ? {} : { owner }),
      ...(sort === undefined || sort === 'created' ? {} : { sort }),
      ...(key === null ? {} : { key }),
      ...(connect === undefined ? {} : { connect }),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { key: _, new: __, connect: ___, ...filters } }) => filters,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(keysQuery(deps))),
  component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
})
