import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../../app/root-route.tsx'
import { type AgentTab, agentTabs } from '../agent-tabs.ts'

/** `tab` is what the page shows, and `outcome` a filter of its calls. */
interface AgentSearch {
  readonly tab?: Exclude<AgentTab, 'overview'>
  readonly outcome?: 'failed'
}

export const agentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/agents/$id',
  validateSearch: (search: Record<string, unknown>): AgentSearch => {
    const tab = agentTabs.find(one => one === search['tab'])
    return { ...(tab === undefined || tab === 'overview' ? {} : { tab }), ...(search['outcome'] === 'failed' ? { outcome: 'failed' as const } : {}) }
  },
  component: lazyRouteComponent(() => import('./agent-page.tsx'), 'AgentPage'),
})
