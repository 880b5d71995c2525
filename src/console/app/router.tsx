import { createRouter } from '@tanstack/react-router'
import { agentRoute } from '../pages/agents/agent/route.ts'
import { agentsRoute } from '../pages/agents/route.ts'
import { auditRoute } from '../pages/audit/route.ts'
import { billingRoute } from '../pages/billing/route.ts'
import { budgetsRoute } from '../pages/budgets/route.ts'
import { callsRoute } from '../pages/calls/route.ts'
import { collectionRoute } from '../pages/collections/one/route.ts'
import { collectionsRoute } from '../pages/collections/route.ts'
import { complianceRoute } from '../pages/compliance/route.ts'
import { galleryRoute } from '../pages/gallery/route.ts'
import { healthRoute } from '../pages/health/route.ts'
import { keysRoute } from '../pages/keys/route.ts'
import { membersRoute } from '../pages/members/route.ts'
import { memoryRoute } from '../pages/memory/route.ts'
import { modelsRoute } from '../pages/models/route.ts'
import { overviewRoute } from '../pages/overview/route.ts'
import { playgroundRoute } from '../pages/playground/route.ts'
import { providersRoute } from '../pages/providers/route.ts'
import { chainRoute } from '../pages/routing/chain/route.ts'
import { routingRoute } from '../pages/routing/route.ts'
import { runsRoute } from '../pages/runs/route.ts'
import { runRoute } from '../pages/runs/run/route.ts'
import { serversRoute } from '../pages/servers/route.ts'
import { settingsRoute } from '../pages/settings/route.ts'
import { startRoute } from '../pages/start/route.ts'
import { toolsRoute } from '../pages/tools/route.ts'
import { toolServerRoute } from '../pages/tools/server/route.ts'
import { usageRoute } from '../pages/usage/route.ts'
import { webhooksRoute } from '../pages/webhooks/route.ts'
import { webhookRoute } from '../pages/webhooks/webhook/route.ts'
import { workloadsRoute } from '../pages/workloads/route.ts'
import { workspacesRoute } from '../pages/workspaces/route.ts'
import { rootRoute } from './root-route.tsx'

const routeTree = rootRoute.addChildren([
  overviewRoute,
  agentsRoute,
  agentRoute,
  memoryRoute,
  usageRoute,
  runsRoute,
  runRoute,
  callsRoute,
  keysRoute,
  budgetsRoute,
  membersRoute,
  workspacesRoute,
  toolsRoute,
  toolServerRoute,
  modelsRoute,
  providersRoute,
  routingRoute,
  chainRoute,
  serversRoute,
  collectionsRoute,
  collectionRoute,
  settingsRoute,
  webhooksRoute,
  webhookRoute,
  auditRoute,
  workloadsRoute,
  complianceRoute,
  billingRoute,
  healthRoute,
  playgroundRoute,
  startRoute,
  galleryRoute,
])

/**
 * The router of the console. Filters are in the address, typed by `validateSearch` of each route. The loader of a route begins the first read of its page while
 * the page's own file loads. A pointer above a link loads that file only (`preload`), because a read may be refused and counts against the rate limit.
 */
export const router = createRouter({ routeTree, basepath: '/console', defaultPreload: 'intent', scrollRestoration: true })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
