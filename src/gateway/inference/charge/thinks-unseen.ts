/** Which calls may think without showing it. Thought costs as output does, and only the provider can count it. Decision 0484 says why. */
import type { Model } from '../../catalog/model.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** Members of requests, in any format, that ask a model to think. Providers know models that think though their row does not say so. */
const thoughtNames = ['reasoning', 'reasoning_effort', 'include_reasoning', 'thinking', 'thinking_budget', 'enable_thinking', 'chat_template_kwargs'] as const

/** True for a model that thinks, and for a request that asks any model to. */
export function thinksUnseen({ native: { body } }: Pick<ParsedRequest, 'native'>, model: Pick<Model, 'reasoning'>): boolean {
  return model.reasoning || thoughtNames.some(name => body[name] !== undefined && body[name] !== null)
}
