import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type MembersSearch, memberRoles, memberSorts, memberStates, membersQuery } from './search.ts'

const queryMax = 100

export const membersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/members',
  validateSearch: (search: Record<string, unknown>): MembersSearch => {
    const member = Number(search['member'])
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = memberStates.find(one => one === search['state'])
    const role = memberRoles.find(one => one === search['role'])
    const sort = memberSorts.find(one => one === search['sort'])
    return {
      ...(q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(role === undefined ? {} : { role }),
      ...(sort === undefined || sort === 'created' ? {} : { sort }),
      ...(Number.isSafeInteger(member) && member > 0 ? { member } : {}),
      ...(search['invite'] ? { invite: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { member: _, invite: __, ...filters } }) => filters,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(membersQuery(deps))),
  component: lazyRouteComponent(() => import('./members-page.tsx'), 'MembersPage'),
})
