/**
 * Decides which calls may use hidden reasoning, which the provider does not show. Hidden reasoning costs the same as output, and only the provider can count
 * it. Decision 0484 says why.
 */
import type { Model } from '../../catalog/model.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** Returns true for a model that thinks, and for a request that asks any model to think. */
export const thinksUnseen = ({ asksThought }: Pick<ParsedRequest, 'asksThought'>, { reasoning }: Pick<Model, 'reasoning'>): boolean =>
  reasoning || asksThought === true

/** True when the limit of the provider bounds the answer only, and thinking comes beside it. */
export const limitExcludesThinking = ({ route: { provider } }: Pick<Attempt, 'route'>): boolean => provider.quirks.includes('limit-excludes-thinking')

/** Returns true for a call whose thinking no limit of the request bounds: only what the model can write does. Decision 0844. */
export const thinksBesideLimit = (request: Pick<ParsedRequest, 'asksThought'>, attempt: Pick<Attempt, 'route' | 'model'>): boolean =>
  limitExcludesThinking(attempt) && thinksUnseen(request, attempt.model)
