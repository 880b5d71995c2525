/**
 * Decides which calls may use hidden reasoning, which the provider does not show. Hidden reasoning costs the same as output, and only the provider can count
 * it. Decision 0484 says why.
 */
import type { Model } from '../../catalog/model.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** Returns true for a model that thinks, and for a request that asks any model to think. */
export const thinksUnseen = ({ asksThought }: Pick<ParsedRequest, 'asksThought'>, { reasoning }: Pick<Model, 'reasoning'>): boolean =>
  reasoning || asksThought === true
