import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type ModelsSearch, modelKinds } from './search.ts'

const textMax = 256
const textOf = (value: unknown): string => (['string', 'number', 'boolean'].includes(typeof value) ? String(value).slice(0, textMax) : '')

export const modelsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/models',
  validateSearch: (search: Record<string, unknown>): ModelsSearch => {
    const [q, model] = [textOf(search['q']), textOf(search['model'])]
    const kind = modelKinds.find(one => one === search['kind'])
    return {
      ...(q === '' ? {} : { q }),
      ...(kind === undefined ? {} : { kind }),
      ...(search['ready'] ? { ready: true as const } : {}),
      ...(search['india'] ? { india: true as const } : {}),
      ...(model === '' ? {} : { model }),
    }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('listModels'))),
  component: lazyRouteComponent(() => import('./models-page.tsx'), 'ModelsPage'),
})
