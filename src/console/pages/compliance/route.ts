import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type DocumentWindow, defaultWindow, windows } from './search.ts'

interface ComplianceSearch {
  readonly window?: DocumentWindow
}

export const complianceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/compliance',
  validateSearch: (search: Record<string, unknown>): ComplianceSearch => {
    const window = windows.find(one => one === search['window'])
    return window === undefined || window === defaultWindow ? {} : { window }
  },
  component: lazyRouteComponent(() => import('./compliance-page.tsx'), 'CompliancePage'),
})
