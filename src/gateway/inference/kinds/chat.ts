import { parseChat } from '../../wire/chat.ts'
import { parseRouterFields } from '../../wire/router-fields.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { Kind, ParsedRequest } from './kind.ts'
import { parseObject } from './parse-object.ts'

/** OpenAI chat completions, which is also the hub format. */
export const chatKind: Kind = {
  usageKind: 'chat',
  modelKind: 'chat',
  hasOutput: true,

  parse(bytes): ParsedRequest {
    const body = parseObject(bytes)
    const { fields, stripped, touched } = parseRouterFields(body)
    const chat = parseChat(stripped)
    return {
      modelId: chat.model,
      fields,
      hub: { operation: 'chat', body: stripped, bytes: touched ? null : bytes, stream: chat.stream },
      maxTokens: chat.maxTokens,
      promptTokens: chat.promptTokensEstimate,
      needs: { tools: chat.hasTools, vision: chat.hasImages },
      withholdUsage: chat.stream && chat.includeUsage === false,
    }
  },

  complete(reply, usage) {
    const withUsage = completeUsage(reply, usage)
    const withReasoning = nameReasoning(withUsage ?? reply)
    return withReasoning ?? withUsage
  },
}

/** Fills `usage` and its total where the provider left them out, so that every caller can add up. */
function completeUsage(reply: Record<string, unknown>, usage: TokenUsage): Record<string, unknown> | null {
  const given = reply['usage']
  const block = typeof given === 'object' && given !== null ? (given as Record<string, unknown>) : {}
  if (Number.isInteger(block['prompt_tokens']) && Number.isInteger(block['completion_tokens']) && Number.isInteger(block['total_tokens'])) return null
  return {
    ...reply,
    usage: {
      ...block,
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      total_tokens: usage.promptTokens + usage.completionTokens,
    },
  }
}

/** Thinking stands in `reasoning_content`, whatever the provider calls it; without thinking the key is absent, not null. */
function nameReasoning(reply: Record<string, unknown>): Record<string, unknown> | null {
  const choices = reply['choices']
  if (!Array.isArray(choices)) return null
  return choices.some(isMisnamed) ? { ...reply, choices: choices.map((choice: unknown) => (isMisnamed(choice) ? renamed(choice) : choice)) } : null
}

interface WithMessage extends Record<string, unknown> {
  readonly message: Record<string, unknown>
}

function isMisnamed(choice: unknown): choice is WithMessage {
  const message = isObject(choice) ? choice['message'] : undefined
  if (!isObject(message) || typeof message['reasoning_content'] === 'string') return false
  return typeof message['reasoning'] === 'string' || 'reasoning_content' in message
}

function renamed(choice: WithMessage): WithMessage {
  const { reasoning, reasoning_content: _none, ...rest } = choice.message
  return { ...choice, message: typeof reasoning === 'string' ? { ...rest, reasoning_content: reasoning } : rest }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
