/** Gives a registered server the form that routing and metering use. */
import type { Model, Route, RoutePrice } from '../../catalog/model.ts'
import type { CustomRoute } from '../org-credentials.ts'

/** The organisation pays for its own server itself, so the gateway charges nothing for calls to it. */
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

/** Returns the route of a registered server for its model. An attempt on this route sends `provider.platformKey` as its credential and has `byok: true`. */
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
