/** Whole chat replies as OpenAI writes them, where a server writes them otherwise. */
import { isObject } from '../../../platform/values/json.ts'

/**
 * A reply whose thinking is in `reasoning_content` and whose content is text; null when nothing has to change. Without thinking the key is absent, not
 * null.
 */
export function nameReasoning(reply: Readonly<Record<string, unknown>>): Record<string, unknown> | null {
  const choices = reply['choices']
  if (!Array.isArray(choices)) return null
  return choices.some(isMisnamed) ? { ...reply, choices: choices.map((choice: unknown) => (isMisnamed(choice) ? renamed(choice) : choice)) } : null
}

interface WithMessage extends Record<string, unknown> {
  readonly message: Record<string, unknown>
}

function isMisnamed(choice: unknown): choice is WithMessage {
  const message = isObject(choice) ? choice['message'] : undefined
  if (!isObject(message)) return false
  if (Array.isArray(message['content']) && message['content'].some(isThinking)) return true
  if (typeof message['reasoning_content'] === 'string') return false
  return typeof message['reasoning'] === 'string' || 'reasoning_content' in message
}

function renamed(choice: WithMessage): WithMessage {
  const { reasoning, reasoning_content: named, ...rest } = choice.message
  const { content } = rest
  const parts: readonly unknown[] = Array.isArray(content) && content.some(isThinking) ? content : []
  const thought = [named, reasoning, parts.map(thinkingIn).join('')].find(text => typeof text === 'string' && text !== '')
  const message = { ...rest, ...(parts.length === 0 ? {} : { content: answerOf(parts) }) }
  return { ...choice, message: thought === undefined ? message : { ...message, reasoning_content: thought } }
}

/** Content in parts without its thinking. Text alone is one string; what else the model has answered with stays in its parts. */
export function answerOf(parts: readonly unknown[]): unknown {
  const left = parts.filter(part => !isThinking(part))
  return left.every(part => isObject(part) && typeof part['text'] === 'string') ? left.map(textIn).join('') : left
}

/** True for a part of content that is thinking. */
export const isThinking = (part: unknown): boolean => isObject(part) && part['type'] === 'thinking'
const textIn = (part: unknown): string => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')

/** The text of such a part: thinking is text, or parts of text. */
export function thinkingIn(part: unknown): string {
  if (!isThinking(part) || !isObject(part)) return ''
  const { thinking } = part
  return Array.isArray(thinking) ? thinking.map(textIn).join('') : typeof thinking === 'string' ? thinking : ''
}
