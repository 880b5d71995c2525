import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'

/** The lengths of time that the documents can cover. */
export const windows = ['7d', '30d', '90d', '365d'] as const
export type DocumentWindow = (typeof windows)[number]
export const defaultWindow: DocumentWindow = '30d'

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
