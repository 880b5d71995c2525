/** Ranks the most used models over all organisations. */
import type { CatalogSnapshot } from '../../catalog/model.ts'
import type { ModelSumsRow, ModelUsersRow } from './model-stats-queries.ts'

/** Days of the longer ranking, today included. */
export const longRankingDays = 30
/** Maximum number of models of one ranking. */
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
 * Minimum number of organisations that must have used a model on own keys before it is listed. With one organisation, the sums would show the usage
 * of that organisation. Our choice.
 */
export const organisationsMin = 2

/**
 * Returns the models of the catalog, sorted by tokens, then by requests, then by id. A model without a platform route is listed only in a window in
 * which at least `organisationsMin` organisations used it.
 */
export function rankingsOf(sums: readonly ModelSumsRow[], users: readonly ModelUsersRow[], catalog: CatalogSnapshot): UsageRankings {
  const usersOf = new Map(users.map(row => [row.model, row]))
  const isTold = (model: string, organisations: number): boolean => hasPlatformRoute(catalog, model) || organisations >= organisationsMin
  const short = sums.filter(({ model }) => isTold(model, usersOf.get(model)?.organisations ?? 0))
  const long = sums.filter(({ model }) => isTold(model, usersOf.get(model)?.longOrganisations ?? 0))
  return {
    windows: {
      '7d': ranked(short.map(({ model, requests, tokens }) => ({ model, requests, tokens }))),
      '30d': ranked(long.map(({ model, longRequests, longTokens }) => ({ model, requests: longRequests, tokens: longTokens }))),
    },
  }
}

/** Returns whether the platform serves the model on its own key. Such a model is ranked even if few organisations use it. */
export function hasPlatformRoute({ models }: CatalogSnapshot, id: string): boolean {
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
