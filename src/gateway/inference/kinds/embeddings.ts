import { parseEmbeddings } from '../../wire/embeddings.ts'
import { parseRouterFields } from '../../wire/router-fields.ts'
import type { Kind, ParsedRequest } from './kind.ts'
import { parseObject } from './parse-object.ts'

/** OpenAI embeddings: input tokens only, never a stream. */
export const embeddingsKind: Kind = {
  usageKind: 'embeddings',
  modelKind: 'embedding',
  hasOutput: false,

  parse(bytes): ParsedRequest {
    const { fields, stripped, touched } = parseRouterFields(parseObject(bytes))
    const request = parseEmbeddings(stripped)
    return {
      modelId: request.model,
      fields,
      hub: { operation: 'embeddings', body: stripped, bytes: touched ? null : bytes, stream: false },
      maxTokens: 0,
      promptTokens: request.promptTokensEstimate,
      needs: { tools: false, vision: false },
      withholdUsage: false,
    }
  },

  complete(reply, usage) {
    if (typeof reply['usage'] === 'object' && reply['usage'] !== null) return null
    return { ...reply, usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.promptTokens } }
  },
}
