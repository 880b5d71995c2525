import type { HubRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import { type ParsedChat, parseChat, promptTextOf } from '../../wire/chat/chat.ts'
import { chatFormat } from '../../wire/chat/chat-format.ts'
import { nameReasoning } from '../../wire/chat/chat-reply.ts'
import { refuseChargedTools } from '../../wire/chat/chat-tools.ts'
import { parseRouterFields, type RouterFields } from '../../wire/chat/router-fields.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import { performChat } from '../attempt/perform-chat.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import { asksThought, type ParsedRequest } from './request.ts'
import { thinkingWithin, withFields } from './thinking-length.ts'

/** OpenAI chat completions, which is also the hub format. */
export const chatKind: Kind = {
  usageKind: 'chat',
  modelKind: 'chat',
  hasOutput: true,

  format: chatFormat,
  perform: performChat,

  parse({ bytes }): ParsedRequest {
    const body = parseObject(bytes)
    const { fields, stripped, touched } = parseRouterFields(body)
    return new ChatRequest(parseChat(stripped, unseenDigitsOf(bytes)), fields, stripped, touched ? null : bytes)
  },

  complete(reply, usage) {
    const withUsage = completeUsage(reply, usage)
    const withReasoning = nameReasoning(withUsage ?? reply)
    return withReasoning ?? withUsage
  },
}

const none: readonly string[] = Object.freeze([])
const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** A chat request. Its native format is also the hub format. */
class ChatRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly forwarded = null
  readonly modelId: string
  readonly fields: RouterFields
  readonly stream: boolean
  readonly maxTokens: number | null
  readonly answers: number
  readonly asksThought: boolean
  readonly promptTokens: number
  readonly promptMedia: ParsedRequest['promptMedia']
  readonly promptUnreadTokens: ParsedRequest['promptUnreadTokens']
  readonly promptDigitTokens: ParsedRequest['promptDigitTokens']
  readonly needs: ParsedRequest['needs']
  readonly withholdUsage: boolean
  readonly hub: HubRequest
  readonly #chat: ParsedChat

  constructor(chat: ParsedChat, fields: RouterFields, body: Readonly<Record<string, unknown>>, bytes: Buffer | null) {
    this.#chat = chat
    this.modelId = chat.model
    this.fields = fields
    this.stream = chat.stream
    this.maxTokens = chat.maxTokens
    this.answers = chat.answers
    this.asksThought = asksThought(body)
    this.promptTokens = chat.promptTokensEstimate
    this.promptMedia = chat.promptMedia
    this.promptUnreadTokens = chat.promptUnreadTokens
    this.promptDigitTokens = chat.promptDigitTokens
    this.needs = { tools: chat.hasTools, vision: chat.hasImages }
    this.withholdUsage = chat.stream && chat.includeUsage === false
    this.hub = { operation: 'chat', body, bytes, stream: chat.stream, dropped: none }
  }

  get native(): ParsedRequest['native'] {
    const { body, bytes, stream } = this.hub
    return { format: 'openai', body, bytes, stream, headers: noHeaders, query: '' }
  }

  checkFor({ route, byok }: Attempt): void {
    if (this.needs.tools && !byok && route.dialect !== 'openai') refuseChargedTools(this.hub.body['tools'])
  }

  promptText(): string {
    return promptTextOf(this.hub.body)
  }

  withMaxTokens(answerMaxTokens: number): ParsedRequest {
    const chat = { ...this.#chat, maxTokens: answerMaxTokens * this.answers, answerMaxTokens }
    const { body } = this.hub
    // A limit under its newer name is replaced under that name. Providers refuse a request with both.
    const isNewer = typeof body['max_completion_tokens'] === 'number'
    const isPlain = !isNewer || typeof body['max_tokens'] === 'number'
    const limits = { ...(isPlain ? { max_tokens: answerMaxTokens } : {}), ...(isNewer ? { max_completion_tokens: answerMaxTokens } : {}) }
    return new ChatRequest(chat, this.fields, { ...withFields(body, thinkingWithin(body, answerMaxTokens)), ...limits }, null)
  }
}

/** Returns the reply with `usage` and its total filled in when the provider left them out. Callers can so add up every reply's usage. */
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
