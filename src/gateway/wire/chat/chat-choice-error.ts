/**
 * Finds choices that failed. Some upstream gateways answer 200 and put the error of the model's server into a choice, both in whole replies and in streams.
 */
import { isObject } from '../../../platform/values/json.ts'

/** The finish reason of a choice whose model failed. */
const failedFinish = 'error'
const unsaid: Readonly<Record<string, unknown>> = Object.freeze({ message: 'The provider ended the answer with an error.' })

/** Returns the error of the first failed choice of a whole chat reply or a chunk; null: no choice failed. */
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
