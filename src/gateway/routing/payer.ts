/**
 * Decides who pays for a call: the platform's account, the caller's own credentials, or nobody. The payer limits where the call may go. Decision 0325
 * gives the reasons.
 */
import { type ErrorName, fail, GatewayError } from '../../platform/errors.ts'
import type { Plan, ResolveRequest } from './plan.ts'

/** Resolves a request in the same way as `resolve`. */
export type Resolve = (request: ResolveRequest) => Plan

/** The errors of `resolve` when no credential can serve the call. */
const withoutRoute: readonly ErrorName[] = ['no_route', 'no_route_virtual', 'byok_required']

const isWithoutRoute = (error: unknown): boolean => error instanceof GatewayError && withoutRoute.includes(error.errorName)

/**
 * Returns the plan of a caller's request. A trial key may use the platform's models in India free of charge, and the caller's own credentials. Throws
 * `insufficient_credits` when only the platform's account could pay. Throws all errors of `resolve`.
 */
export function resolveAsPaid(isTrial: boolean | undefined, request: ResolveRequest, resolve: Resolve): Plan {
  if (isTrial !== true) return resolve(request)
  try {
    return resolve({ ...request, platform: 'india' })
  } catch (error) {
    if (!isWithoutRoute(error)) throw error
    // When credit would not help either, this throws the error that the request would get with credit.
    resolve(request)
    throw fail('insufficient_credits', {
      message:
        'A trial key is free on models that the platform runs in India, and nothing else is paid for it. Top up, save your own provider key (PUT /me/byok/{provider}), or take a model with an India-resident route (GET /v1/models).',
    })
  }
}

/**
 * Returns the plan for a call for which the platform's account pays nothing. Only the organisation's own credentials may serve the call. Returns null
 * when no route has such a credential.
 */
export function resolveWithoutBalance(request: ResolveRequest, resolve: Resolve): Plan | null {
  try {
    return resolve({ ...request, platform: 'none' })
  } catch (error) {
    if (isWithoutRoute(error)) return null
    throw error
  }
}
