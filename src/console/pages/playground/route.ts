import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'

/** The models of the two columns. The message is not in the address. */
export interface PlaygroundSearch {
  readonly model?: string
  /** The model beside it. */
  readonly with?: string
}

const idShape = /^[^\s\p{Cc}]{1,200}$/u
const idOf = (value: unknown): string | undefined => (typeof value === 'string' && idShape.test(value) ? value : undefined)

export const playgroundRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/playground',
  validateSearch: (search: Record<string, unknown>): PlaygroundSearch => {
    const [model, beside] = [idOf(search['model']), idOf(search['with'])]
    return { ...(model === undefined ? {} : { model }), ...(beside === undefined ? {} : { with: beside }) }
  },
  component: lazyRouteComponent(() => import('./playground-page.tsx'), 'PlaygroundPage'),
})
