import type { Secret } from '../../platform/secret.ts'
import { type Model, type Route, type RouteId, routeId, stateKeyOf } from '../catalog/model.ts'
import type { RouterFields } from '../wire/router-fields.ts'
import type { Attempt } from './plan.ts'

/** A route that might serve the call, with its model. */
export interface Candidate {
  readonly model: Model
  readonly route: Route
}

/** Every route of a model. */
export const candidatesOf = (model: Model): readonly Candidate[] => model.routes.map(route => ({ model, route }))

/** Only proven India-resident routes pass `india_only`. */
export const meetsResidency = ({ route }: Candidate, fields: RouterFields): boolean => !fields.indiaOnly || route.residency === 'india'

/** `exclude` names a provider, or a provider for one model. */
export const isExcluded = ({ route }: Candidate, fields: RouterFields): boolean =>
  fields.exclude.includes(route.provider.id) || fields.exclude.includes(routeId(route))

/** Whose credential may serve a candidate. */
export interface Credentials {
  /** The saved key of the calling organisation at a provider. */
  savedKey(providerId: string): Secret | null
  /** Whether the platform's route is withheld for the time being. */
  inMaintenance(id: RouteId): boolean
}

/** The candidate with the credential that would serve it: the platform's key first, else the organisation's saved one, else null. */
export function withCredential({ model, route }: Candidate, credentials: Credentials): Attempt | null {
  const { provider } = route
  if (provider.configured && !route.byokOnly && !credentials.inMaintenance(stateKeyOf(route)))
    return { model, route, credential: provider.platformKey, byok: false }
  const saved = provider.byok ? credentials.savedKey(provider.id) : null
  return saved === null ? null : { model, route, credential: saved, byok: true }
}

/**
 * The candidates that a key sent with the request may serve. A pinned provider gets it. Without a pin it goes to the providers whose key
 * shape it has; a key that looks like one of a provider outside the candidates goes to nobody; any other key may go to each that takes
 * callers' keys, and the caller of this function keeps to the first of them: one provider, never a second.
 */
export function withRequestKey(candidates: readonly Candidate[], key: Secret, pinned: boolean, shapes: ReadonlyMap<string, string>): readonly Attempt[] {
  const takers = candidates.filter(({ route }) => route.provider.byok)
  const attempts = (chosen: readonly Candidate[]): readonly Attempt[] => chosen.map(({ model, route }) => ({ model, route, credential: key, byok: true }))
  if (pinned) return attempts(takers)
  const owners = [...shapes].filter(([, shape]) => new RegExp(shape).test(key.reveal())).map(([providerId]) => providerId)
  return attempts(owners.length === 0 ? takers : takers.filter(({ route }) => owners.includes(route.provider.id)))
}
