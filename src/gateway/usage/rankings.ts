/** Which models are used most, over all organisations. */
import type { CatalogSnapshot } from '../catalog/model.ts'
import type { ModelSumsRow } from './model-stats-queries.ts'

/** Days of the longer ranking, today included. */
export const longRankingDays = 30
/** Most models of one ranking. */
export const rankingMax = 100

export interface RankedModel {
  readonly model: string
  readonly requests: number
  readonly tokens: number
  /** 1 is the most used. */
  readonly rank: number
}

export interface UsageRankings {
  readonly windows: { readonly '7d': readonly RankedModel[]; readonly '30d': readonly RankedModel[] }
}

/**
 * Models by token volume; where that is the same by requests, then by id, so that the order never changes by itself. Only models that the
 * catalog has a platform route for: what runs on keys and servers of organisations is theirs.
 */
export function rankingsOf(sums: readonly ModelSumsRow[], catalog: CatalogSnapshot): UsageRankings {
  const listed = sums.filter(({ model }) => hasPlatformRoute(catalog, model))
  return {
    windows: {
      '7d': ranked(listed.map(({ model, requests, tokens }) => ({ model, requests, tokens }))),
      '30d': ranked(listed.map(({ model, longRequests, longTokens }) => ({ model, requests: longRequests, tokens: longTokens }))),
    },
  }
}

function hasPlatformRoute({ models }: CatalogSnapshot, id: string): boolean {
  const model = models.get(id)
  return model !== undefined && model.kind !== 'virtual' && model.routes.some(route => route.provider.configured && !route.byokOnly)
}

function ranked(volumes: readonly { readonly model: string; readonly requests: bigint; readonly tokens: bigint }[]): RankedModel[] {
  return volumes
    .filter(({ tokens }) => tokens > 0n)
    .sort((a, b) => descending(a.tokens, b.tokens) || descending(a.requests, b.requests) || (a.model < b.model ? -1 : 1))
    .slice(0, rankingMax)
    .map(({ model, requests, tokens }, index) => ({ model, requests: Number(requests), tokens: Number(tokens), rank: index + 1 }))
}

const descending = (a: bigint, b: bigint): number => (a > b ? -1 : a < b ? 1 : 0)
