/**
 * Decides whether a whole reply with status 200 contains an answer, in each format. A reply without an answer counts as a failed route and is not
 * charged.
 */

import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { HubRequest } from '../dialect.ts'

type Operation = HubRequest['operation']

/** Chat completions need a choice with a message. Embeddings need a vector. */
export function answersInChat(operation: Operation, reply: JsonObject): boolean {
  if (operation === 'embeddings') return objectsOf(reply['data']).length > 0
  return objectsOf(reply['choices']).some(choice => isObject(choice['message']))
}

/** Messages need a list of blocks. The list may be empty, because the model may have nothing to say. */
export const answersInMessages = (_operation: Operation, reply: JsonObject): boolean => isTyped(reply['content'])

/** Returns whether a reply of the Responses API is an answer. An answer has a list of items, which may be empty, and has not failed or been cancelled. */
export function answersInResponses(_operation: Operation, { output, status }: JsonObject): boolean {
  return isTyped(output) && status !== 'failed' && status !== 'cancelled'
}

/** Gemini needs a candidate, or the reason why there is none. */
export function answersInGemini(_operation: Operation, { candidates, promptFeedback }: JsonObject): boolean {
  return objectsOf(candidates).length > 0 || isObject(promptFeedback)
}

/** Returns whether a list is empty or has a part with a type. Parts without a type do not count. */
function isTyped(parts: unknown): boolean {
  return Array.isArray(parts) && (parts.length === 0 || parts.some(part => isObject(part) && typeof part['type'] === 'string'))
}
