/** Who pays for a call decides where it may go: on the platform's account, on the caller's own credentials, or nowhere. Decision 0325 says why. */
import { type ErrorName, fail, GatewayError } from '../../platform/errors.ts'
import type { Plan, ResolveRequest } from './plan.ts'

/** Resolves a request as `resolve` does. */
export type Resolve = (request: ResolveRequest) => Plan

/** What `resolve` says when nobody's credential can serve the call. */
const withoutRoute: readonly ErrorName[] = ['no_route', 'no_route_virtual', 'byok_required']

const isWithoutRoute = (error: unknown): boolean => error instanceof GatewayError && withoutRoute.includes(error.errorName)

/**
 * The plan of a caller's request. A trial key goes to the platform's models in India, which are free, or to what it brings along; where
 * only the platform's account could pay, it is `insufficient_credits`. Throws that and all of `resolve`.
 */
export function resolveAsPaid(isTrial: boolean | undefined, request: ResolveRequest, resolve: Resolve): Plan {
  if (isTrial !== true) return resolve(request)
  try {
    return resolve({ ...request, platform: 'india' })
  } catch (error) {
    if (!isWithoutRoute(error)) throw error
    // What credit would not help with is said as it is.
    resolve(request)
    throw fail('insufficient_credits', {
      message:
        'A trial key is free on models that the platform runs in India, and nothing else is paid for it. Top up, save your own provider key (PUT /me/byok/{provider}), or take a model with an India-resident route (GET /v1/models).',
    })
  }
}

/** The plan of a request for which the platform's account does not pay any more: what the organisation brings along itself. Null when that is nothing. */
export function resolveWithoutBalance(request: ResolveRequest, resolve: Resolve): Plan | null {
  try {
    return resolve({ ...request, platform: 'none' })
  } catch (error) {
    if (isWithoutRoute(error)) return null
    throw error
  }
}
