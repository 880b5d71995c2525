/** A registered server in the shape of routing and metering. */
import type { Model, Route, RoutePrice } from '../../catalog/model.ts'
import type { CustomRoute } from '../org-credentials.ts'

/** The organisation pays for its own server itself, so calls on it cost nothing. */
const price: RoutePrice = {
  inputUinrPerMtok: 0n,
  outputUinrPerMtok: 0n,
  cachedInputUinrPerMtok: 0n,
  cacheWriteUinrPerMtok: 0n,
  uinrPerImage: 0n,
  source: "the organisation's own server",
  asOf: '',
}

/** Returns the provider id of a server, by which calls and chains name it. */
export const customReference = (slug: string): string => `byoe:${slug}`

/** Returns the route of a registered server for its model. An attempt on it has `provider.platformKey` as its credential and `byok: true`. */
export function routeOfCustom({ modelId, provider, upstreamModel, stateKey }: CustomRoute, model: Model): Route {
  return {
    modelId,
    provider,
    upstreamModel,
    dialect: provider.dialect,
    residency: provider.residency,
    price,
    byokOnly: false,
    contextLength: model.contextLength,
    rank: null,
    stateKey,
  }
}
