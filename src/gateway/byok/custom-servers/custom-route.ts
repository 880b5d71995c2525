/** A registered server as routing and metering see it. */
import type { Model, Route, RoutePrice } from '../../catalog/model.ts'
import type { CustomRoute } from '../org-credentials.ts'

/** The organisation pays for its own server itself: calls on it have the value zero. */
const price: RoutePrice = {
  inputUinrPerMtok: 0n,
  outputUinrPerMtok: 0n,
  cachedInputUinrPerMtok: 0n,
  cacheWriteUinrPerMtok: 0n,
  uinrPerImage: 0n,
  source: "the organisation's own server",
  asOf: '',
}

/** Provider id of a server: how calls and chains address it. */
export const customReference = (slug: string): string => `byoe:${slug}`

/** The route of a registered server for the model that it serves. An attempt on it has `provider.platformKey` as credential and `byok: true`. */
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
