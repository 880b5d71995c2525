import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { ChatStreamDecoder } from '../../../wire/chat/chat-stream.ts'
import type { TokenUsage } from '../../../wire/usage.ts'
import type { Dialect, HubRequest, StreamTap, Target, UpstreamRequest } from '../../dialect.ts'
import { classifyFailure } from '../../failure.ts'
import { answersInResponses } from '../answers.ts'
import { mendedBody } from '../json-values.ts'
import { openAiHeaders } from '../openai/openai.ts'
import { ResponsesStreamDecoder } from './responses-decoder.ts'
import { ResponsesStreamTap, responsesRelay } from './responses-relay.ts'
import { completionOfResponse, usageOfResponse } from './responses-reply.ts'
import { responsesBody } from './responses-request.ts'

/** The dialect of OpenAI Responses. Requests of other client formats are translated, and requests of its own format are relayed. It has no embeddings. */
export const openAiResponsesDialect: Dialect = {
  request(request: HubRequest, target: Target): UpstreamRequest {
    if (request.operation !== 'chat') throw fail('unsupported_operation', { message: 'Embeddings are not asked for in the Responses API.' })
    const { body, dropped } = responsesBody(request, target)
    return {
      method: 'POST',
      url: `${target.provider.baseUrl}/responses`,
      headers: openAiHeaders(request, target),
      ...mendedBody(body, target),
      dropped,
    }
  },
  relay: responsesRelay,
  reply: (_operation, reply): Record<string, unknown> => completionOfResponse(reply),
  answers: answersInResponses,
  usageOf(_operation, reply): TokenUsage | null {
    return isObject(reply) ? usageOfResponse(reply['usage']) : null
  },
  failure: classifyFailure,
  decoder: (eventMaxBytes): ChatStreamDecoder => new ResponsesStreamDecoder(eventMaxBytes),
  tap: (): StreamTap => new ResponsesStreamTap(),
}
