/** Who is told that the circuit of a route has opened, and under which name. */
import { customReference } from '../byok/custom-route.ts'
import { type CatalogSnapshot, type RouteId, routeId } from '../catalog/model.ts'

export interface OutageAudience {
  /** null: every organisation; else this one alone. */
  readonly orgId: number | null
  readonly provider: string
  readonly model: string
}

/** Whose own server a state key names. Null when it is not registered any more. */
export type FindServerOwner = (serverId: number) => Promise<{ readonly orgId: number; readonly slug: string; readonly modelId: string } | null>

const ownServer = /^byoe#([0-9]{1,10})$/

/**
 * A route of the catalog is everybody's, whichever key failed on it. An organisation's own server is its own matter. What else has a
 * circuit (`provider/*`, which models share that only callers' own keys reach) is told to nobody: it is no route that others have, and
 * whose calls failed is not known.
 */
export async function audienceOf(route: RouteId, catalog: CatalogSnapshot, findServerOwner: FindServerOwner): Promise<OutageAudience | null> {
  const server = ownServer.exec(route)
  if (server !== null) {
    const owner = await findServerOwner(Number(server[1]))
    return owner === null ? null : { orgId: owner.orgId, provider: customReference(owner.slug), model: owner.modelId }
  }
  for (const model of catalog.models.values()) {
    const found = model.kind === 'virtual' ? undefined : model.routes.find(candidate => routeId(candidate) === route)
    if (found !== undefined) return { orgId: null, provider: found.provider.id, model: found.modelId }
  }
  return null
}
