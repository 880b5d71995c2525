/** Whether a whole reply of status 200 contains an answer, in each format. A reply without one is a failed route, so nobody pays for it. */

import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { HubRequest } from '../dialect.ts'

type Operation = HubRequest['operation']

/** Chat completions: a choice with a message. Embeddings: a vector. */
export function answersInChat(operation: Operation, reply: JsonObject): boolean {
  if (operation === 'embeddings') return objectsOf(reply['data']).length > 0
  return objectsOf(reply['choices']).some(choice => isObject(choice['message']))
}

/** Messages: a list of blocks. It may be empty: the model had nothing to say. */
export const answersInMessages = (_operation: Operation, reply: JsonObject): boolean => isTyped(reply['content'])

/** Responses: a list of items, which may be empty too. */
export function answersInResponses(_operation: Operation, { output, status }: JsonObject): boolean {
  return isTyped(output) && status !== 'failed' && status !== 'cancelled'
}

/** Gemini: a candidate, or why there is none. */
export function answersInGemini(_operation: Operation, { candidates, promptFeedback }: JsonObject): boolean {
  return objectsOf(candidates).length > 0 || isObject(promptFeedback)
}

/** Parts without a type do not count. */
function isTyped(parts: unknown): boolean {
  return Array.isArray(parts) && (parts.length === 0 || parts.some(part => isObject(part) && typeof part['type'] === 'string'))
}
