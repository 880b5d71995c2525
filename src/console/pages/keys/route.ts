import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'

/** `key` opens one key beside the list, and `new` the form for a new one. */
interface KeysSearch {
  readonly key?: number
  readonly new?: true
}

const idOf = (value: unknown): number | null => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : null)

export const keysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/keys',
  validateSearch: (search: Record<string, unknown>): KeysSearch => {
    const key = idOf(search['key'])
    return { ...(key === null ? {} : { key }), ...(search['new'] ? { new: true as const } : {}) }
  },
  component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
})
