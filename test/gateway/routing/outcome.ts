import { routeId } from '../../../src/gateway/catalog/model.ts'
import type { ResolveRequest } from '../../../src/gateway/routing/plan.ts'
import { resolve } from '../../../src/gateway/routing/resolve.ts'
import type { RoutingWorld } from '../../../src/gateway/routing/routing-world.ts'
import { GatewayError } from '../../../src/platform/errors.ts'

/** Returns the routes of the plan, in order. */
export const dialed = (request: ResolveRequest, world: RoutingWorld): string[] => resolve(request, world).attempts.map(attempt => routeId(attempt.route))

/** Returns the status and name of the refusal. */
export function errorOf(request: ResolveRequest, world: RoutingWorld): string {
  try {
    resolve(request, world)
  } catch (error) {
    if (error instanceof GatewayError) return `${error.status} ${error.errorName}`
    throw error
  }
  return 'no error'
}
