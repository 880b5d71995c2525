import { type Reply, reply } from '../../../platform/endpoint.ts'
import { chatFormat } from '../../wire/chat/chat-format.ts'
import { parseRouterFields } from '../../wire/chat/router-fields.ts'
import { parseEmbeddings } from '../../wire/embeddings.ts'
import { batchEmbedRequest, embedReply, embedRequest } from '../../wire/gemini/embeddings.ts'
import { geminiErrorBody } from '../../wire/gemini/reply/error-body.ts'
import { keepOneName } from '../../wire/gemini/request/one-name.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import { objectOfBytes } from '../../wire/json/json-bounds.ts'
import { accepting } from './accepting.ts'
import { embeddingsKind } from './embeddings.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import type { ParsedRequest } from './request.ts'

/** Embeddings in Google's format. The call is one in the format of OpenAI, which every provider of embeddings speaks here. */
export interface GeminiEmbeddings {
  readonly kind: Kind
  /** Returns the reply of the call in Google's format. Throws `reply_not_translated`. */
  replyOf(made: Reply): Reply
}

/** Returns the kind for one call of embedContent, or of batchEmbedContents. */
export function geminiEmbeddings(model: string, isBatch: boolean): GeminiEmbeddings {
  let count = 0
  const parse: Kind['parse'] = ({ bytes }): ParsedRequest => {
    const { fields, stripped } = parseRouterFields(parseObject(bytes))
    keepOneName(stripped)
    const { body, dropped } = isBatch ? batchEmbedRequest(model, stripped) : embedRequest(model, stripped)
    const { inputs, promptTokensEstimate: promptTokens, promptUnreadTokens, promptDigitTokens } = parseEmbeddings(body, unseenDigitsOf(bytes))
    count = inputs
    const sent = { body, bytes: null, stream: false }
    const request: ParsedRequest = {
      operation: 'embeddings',
      modelId: model,
      fields,
      stream: false,
      maxTokens: 0,
      answers: 1,
      promptTokens,
      promptUnreadTokens,
      promptDigitTokens,
      needs: { tools: false, vision: false },
      withholdUsage: false,
      native: { format: 'openai', headers: {}, query: '', ...sent },
      hub: { operation: 'embeddings', dropped, ...sent },
      forwarded: null,
      accepts,
      promptText: () => '',
      withMaxTokens: () => request,
    }
    return request
  }
  return {
    kind: { ...embeddingsKind, format, parse },
    replyOf(made) {
      const { status, headers, body, cookies: _none } = made
      if (body.kind !== 'bytes' || status !== 200) return made
      const { 'content-type': _type, ...others } = headers
      return reply.json(embedReply(objectOfBytes(Buffer.from(body.bytes)) ?? {}, count, isBatch), 200, others)
    },
  }
}

const accepts = accepting('embedding')
const format = { ...chatFormat, errorBody: geminiErrorBody }
