/** Choices that failed: some gateways answer 200 and put the error of the model's server into the choice, whole and streamed. */
import { isObject } from '../../../platform/values/json.ts'

/** What a choice has as its reason when its model failed. */
const failedFinish = 'error'
const unsaid: Readonly<Record<string, unknown>> = Object.freeze({ message: 'The provider ended the answer with an error.' })

/** The error of the first choice that failed, of a whole chat reply or of a chunk; null: none did. */
export function errorOfChoices(choices: unknown): unknown {
  if (!Array.isArray(choices)) return null
  for (const choice of choices as readonly unknown[]) {
    if (!isObject(choice)) continue
    const { error, finish_reason: finish } = choice
    if (error !== undefined && error !== null) return error
    if (finish === failedFinish) return unsaid
  }
  return null
}
