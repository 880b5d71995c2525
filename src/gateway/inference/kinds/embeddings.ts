import { chatFormat } from '../../wire/chat/chat-format.ts'
import { parseRouterFields } from '../../wire/chat/router-fields.ts'
import { parseEmbeddings } from '../../wire/embeddings.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import { performInDialect } from '../attempt/perform-chat.ts'
import { accepting } from './accepting.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import type { ParsedRequest } from './request.ts'

const accepts = accepting('embedding')

/** OpenAI embeddings. They have input tokens only and are never streamed. */
export const embeddingsKind: Kind = {
  usageKind: 'embeddings',
  modelKind: 'embedding',
  hasOutput: false,
  format: chatFormat,
  perform: performInDialect,

  parse({ bytes }): ParsedRequest {
    const { fields, stripped, touched } = parseRouterFields(parseObject(bytes))
    const { model, promptTokensEstimate, promptUnreadTokens, promptDigitTokens } = parseEmbeddings(stripped, unseenDigitsOf(bytes))
    const sent = { body: stripped, bytes: touched ? null : bytes, stream: false }
    const request: ParsedRequest = {
      operation: 'embeddings',
      modelId: model,
      fields,
      stream: false,
      maxTokens: 0,
      answers: 1,
      promptTokens: promptTokensEstimate,
      promptUnreadTokens,
      promptDigitTokens,
      needs: { tools: false, vision: false },
      withholdUsage: false,
      native: { format: 'openai', headers: {}, query: '', ...sent },
      hub: { operation: 'embeddings', dropped: [], ...sent },
      forwarded: null,
      accepts,
      promptText: () => '',
      withMaxTokens: () => request,
    }
    return request
  },

  complete(reply, usage) {
    if (typeof reply['usage'] === 'object' && reply['usage'] !== null) return null
    return { ...reply, usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.promptTokens } }
  },
}
