import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../../app/root-route.tsx'

/** The id of a run is a text of its client, so it is in the query, where every character may be. */
interface RunSearch {
  readonly id: string
  readonly agent?: number
  readonly key?: number
}

const idMax = 256
const numberOf = (value: unknown): number | null => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : null)

export const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/runs/one',
  validateSearch: (search: Record<string, unknown>): RunSearch => {
    const [agent, key] = [numberOf(search['agent']), numberOf(search['key'])]
    return { id: String(search['id'] ?? '').slice(0, idMax), ...(agent === null ? {} : { agent }), ...(key === null ? {} : { key }) }
  },
  component: lazyRouteComponent(() => import('./run-page.tsx'), 'RunPage'),
})
