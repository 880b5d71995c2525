/** Charges for the model that a reply names. On the platform's key no caller gets a dearer model at the price of the requested one. */
import type { Route } from '../../catalog/model.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { PerformContext } from '../kinds/kind.ts'

/** The attempt that serves the call, and its context. */
interface Served {
  readonly attempt: Attempt
  readonly context: PerformContext
}

/** Charges a call as the model that the whole reply names when that model is another and dearer one. */
export function priceAsNamed(model: unknown, served: Served): void {
  const { route, byok } = served.attempt
  if (!byok && typeof model === 'string') priceAs(route, model, served)
}

/**
 * Returns the function that does the same for a stream. A stream may name its model anywhere, so the relay calls the function at each change of
 * the name. The dearest model counts.
 */
export function priceAsStreamed(served: Served): (model: string) => void {
  let priced = served.attempt.route
  return model => {
    priced = priceAs(priced, model, served)
  }
}

/** Returns the route that now gives the price of the call. */
function priceAs(priced: Route, model: string, { attempt: { route }, context }: Served): Route {
  if (model === route.upstreamModel || model === route.modelId) return priced
  // A cloud serves the model of the path, and its reply has the vendor's name, which says nothing about the region and its price.
  if (route.provider.cloud !== undefined) return priced
  const dearer = context.deps.dearerRoute?.(priced, model) ?? null
  if (dearer === null) return priced
  context.priceAs?.(dearer)
  context.deps.log.warn('another model answered', { provider: route.provider.id, model: route.modelId, code: dearer.modelId })
  return dearer
}
