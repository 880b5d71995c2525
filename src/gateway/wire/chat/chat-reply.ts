/** Changes whole chat replies of servers that deviate from OpenAI's shape into that shape. */
import { isObject } from '../../../platform/values/json.ts'

/**
 * Returns the reply with its thinking in `reasoning_content` and its content as text; null if nothing has to change. Without thinking, `reasoning_content`
 * is absent, not null.
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

/** Returns content in parts without its thinking. If only text is left, the result is one string. Otherwise the parts stay parts. */
export function answerOf(parts: readonly unknown[]): unknown {
  const left = parts.filter(part => !isThinking(part))
  return left.every(part => isObject(part) && typeof part['text'] === 'string') ? left.map(textIn).join('') : left
}

/** True for a part of content that is thinking. */
export const isThinking = (part: unknown): boolean => isObject(part) && part['type'] === 'thinking'
const textIn = (part: unknown): string => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')

/** Returns the text of such a part. Its thinking is a text, or a list of text parts. */
export function thinkingIn(part: unknown): string {
  if (!isThinking(part) || !isObject(part)) return ''
  const { thinking } = part
  return Array.isArray(thinking) ? thinking.map(textIn).join('') : typeof thinking === 'string' ? thinking : ''
}
