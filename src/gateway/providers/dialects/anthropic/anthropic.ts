import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { ChatStreamDecoder } from '../../../wire/chat/chat-stream.ts'
import { boundedObject } from '../../../wire/json/json-texts.ts'
import { usageFromMessages } from '../../../wire/messages/reply/usage.ts'
import type { TokenUsage } from '../../../wire/usage.ts'
import { bedrockFailure } from '../../clouds/bedrock-failure.ts'
import type { Dialect, Failure, HubRequest, NativeRequest, StreamTap, Target, UpstreamRequest } from '../../dialect.ts'
import { classifyFailure } from '../../failure.ts'
import { answersInMessages } from '../answers.ts'
import { mendedBody, textOf } from '../json-values.ts'
import { cloudCountRelay, cloudRelay, cloudRequest } from './anthropic-cloud.ts'
import { AnthropicStreamDecoder } from './anthropic-decoder.ts'
import { AnthropicStreamTap, anthropicCountRelay, anthropicHeaders, anthropicRelay } from './anthropic-relay.ts'
import { completionOf } from './anthropic-reply.ts'
import { messagesBody } from './anthropic-request.ts'

/**
 * The dialect of Anthropic messages. Requests of other client formats are translated, and requests of its own format are relayed. It has no
 * embeddings.
 */
export const anthropicDialect: Dialect = {
  request(request: HubRequest, target: Target): UpstreamRequest {
    if (request.operation !== 'chat') throw fail('bad_request', { message: 'The provider of this model has no embeddings. Use a model of kind embedding.' })
    const { cloud } = target.provider
    if (cloud !== undefined) return cloudRequest(cloud, request, target)
    const { body, dropped } = messagesBody(request, target)
    return {
      method: 'POST',
      url: `${target.provider.baseUrl}/messages`,
      headers: anthropicHeaders(target, request.stream),
      ...mendedBody(body, target),
      dropped,
    }
  },
  relay(request: NativeRequest, target: Target): UpstreamRequest {
    const { cloud } = target.provider
    return cloud === undefined ? anthropicRelay(request, target) : cloudRelay(cloud, request, target)
  },
  count(request: NativeRequest, target: Target): UpstreamRequest {
    const { cloud } = target.provider
    return cloud === undefined ? anthropicCountRelay(request, target) : cloudCountRelay(cloud, request, target)
  },
  // Bedrock counts in a format of its own.
  mayCount: ({ cloud }): boolean => cloud !== 'bedrock-invoke',
  reply: (_operation, reply): Record<string, unknown> => completionOf(reply),
  answers: answersInMessages,
  usageOf(_operation, reply): TokenUsage | null {
    return isObject(reply) ? usageFromMessages(reply['usage']) : null
  },
  failure: failureOf,
  decoder: (eventMaxBytes): ChatStreamDecoder => new AnthropicStreamDecoder(eventMaxBytes),
  tap: (): StreamTap => new AnthropicStreamTap(),
}

/** Classifies a failure. Some error types of the format say more than the status of the reply. */
function failureOf(status: number, headers: Parameters<Dialect['failure']>[1], bodyText: string): Failure {
  const ofBedrock = bedrockFailure(status, headers, bodyText)
  if (ofBedrock !== null) return ofBedrock
  const error = boundedObject(bodyText)?.['error']
  const said = isObject(error) ? error : {}
  switch (said['type']) {
    case 'overloaded_error':
    case 'timeout_error':
      return { kind: 'transient', status }
    case 'billing_error':
      return { kind: 'billing', status }
    case 'authentication_error':
      return { kind: 'credential', status }
    default:
      // The provider answers 400 when an account has no money.
      if (status === 400 && /credit balance is too low/i.test(textOf(said['message']))) return { kind: 'billing', status }
      return classifyFailure(status, headers, bodyText)
  }
}
