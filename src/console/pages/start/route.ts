import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { readProgress } from './progress.ts'

export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/start',
  validateSearch: readProgress,
  component: lazyRouteComponent(() => import('./start-page.tsx'), 'StartPage'),
})
