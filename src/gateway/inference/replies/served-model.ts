/** The model that a reply names: on the platform's key nobody is served a dearer one for the price of another. */
import type { Route } from '../../catalog/model.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { PerformContext } from '../kinds/kind.ts'

/** The attempt that is served, and what it was given. */
interface Served {
  readonly attempt: Attempt
  readonly context: PerformContext
}

/** Charges the call as the model that the whole reply names, when that is another one and dearer. */
export function priceAsNamed(model: unknown, served: Served): void {
  const { route, byok } = served.attempt
  if (!byok && typeof model === 'string') priceAs(route, model, served)
}

/** The same for a stream, which may name its model anywhere: the result is called at each change of the name, and the dearest one counts. */
export function priceAsStreamed(served: Served): (model: string) => void {
  let priced = served.attempt.route
  return model => {
    priced = priceAs(priced, model, served)
  }
}

/** Returns the route by which the call is charged now. */
function priceAs(priced: Route, model: string, { attempt: { route }, context }: Served): Route {
  if (model === route.upstreamModel || model === route.modelId) return priced
  const dearer = context.deps.dearerRoute?.(priced, model) ?? null
  if (dearer === null) return priced
  context.priceAs?.(dearer)
  context.deps.log.warn('another model answered', { provider: route.provider.id, model: route.modelId, code: dearer.modelId })
  return dearer
}
