import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type WorkspacesSearch, workspaceSorts, workspaceStates, workspacesQuery } from './search.ts'

const queryMax = 100

export const workspacesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/workspaces',
  validateSearch: (search: Record<string, unknown>): WorkspacesSearch => {
    const workspace = Number(search['workspace'])
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = workspaceStates.find(one => one === search['state'])
    const sort = workspaceSorts.find(one => one === search['sort'])
    return {
      ...(q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(sort === undefined || sort === 'created' ? {} : { sort }),
      ...(Number.isSafeInteger(workspace) && workspace > 0 ? { workspace } : {}),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { workspace: _, new: __, ...filters } }) => filters,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(workspacesQuery(deps))),
  component: lazyRouteComponent(() => import('./workspaces-page.tsx'), 'WorkspacesPage'),
})
