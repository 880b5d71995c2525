import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ChatStreamDecoder } from '../../../wire/chat/chat-stream.ts'
import { type TokenUsage, usageToOpenAi } from '../../../wire/usage.ts'
import { callHeaders } from '../../call-headers.ts'
import { vertexGeminiUrl } from '../../clouds/cloud-addresses.ts'
import type { Dialect, Failure, HubRequest, StreamTap, Target, UpstreamRequest } from '../../dialect.ts'
import { classifyFailure } from '../../failure.ts'
import type { Provider } from '../../provider.ts'
import { answersInGemini } from '../answers.ts'
import { mendedBody, textOf } from '../json-values.ts'
import { GeminiStreamDecoder } from './gemini-decoder.ts'
import { GeminiStreamTap, geminiCountBody, geminiRelayBody } from './gemini-relay.ts'
import { blockedPromptText, blockedText, finishReason, geminiUsage, PartReader } from './gemini-reply.ts'
import { geminiBody } from './gemini-request.ts'

/** The dialect of Gemini's generateContent. Requests of other client formats are translated, and requests of its own format are relayed. It has no embeddings. */
export const geminiDialect: Dialect = {
  request(request: HubRequest, target: Target): UpstreamRequest {
    if (request.operation !== 'chat')
      throw fail('bad_request', { message: 'The provider of this model serves no embeddings here. Use another model of kind embedding.' })
    const { body, dropped } = geminiBody(request, target)
    return { method: 'POST', url: urlOf(target, request.stream), headers: headersOf(target, request.stream), ...mendedBody(body, target), dropped }
  },
  relay: (request, target): UpstreamRequest => ({
    method: 'POST',
    url: urlOf(target, request.stream),
    headers: headersOf(target, request.stream),
    ...geminiRelayBody(request, target),
  }),
  count: (request, target): UpstreamRequest => ({
    method: 'POST',
    url: urlOf(target, false).replace(/:generateContent$/, ':countTokens'),
    headers: headersOf(target, false),
    ...geminiCountBody(request, target),
    dropped: [],
  }),
  reply: (_operation, reply): Record<string, unknown> => completionOf(reply),
  answers: answersInGemini,
  usageOf(_operation, reply): TokenUsage | null {
    return isObject(reply) ? geminiUsage(reply['usageMetadata']) : null
  },
  failure: failureOf,
  decoder: (eventMaxBytes): ChatStreamDecoder => new GeminiStreamDecoder(eventMaxBytes),
  tap: (): StreamTap => new GeminiStreamTap(),
}

/** Returns the URL. The OpenAI-compatible API has its own path below the native one. A provider row may contain the URL of either API. */
function urlOf({ provider, upstreamModel }: Target, stream: boolean): string {
  if (provider.cloud !== undefined) return vertexGeminiUrl(provider.baseUrl, upstreamModel, stream)
  const base = provider.baseUrl.replace(/\/openai$/, '')
  const model = upstreamModel
    .replace(/^models\//, '')
    .split('/')
    .map(encodeURIComponent)
    .join('/')
  return `${base}/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
}

/**
 * Returns the headers. A key is sent in the API's own header, because the API accepts another kind of token as a bearer. Vertex takes only that other
 * kind, so there a bearer stays a bearer.
 */
function headersOf({ provider, credential }: Target, stream: boolean): Record<string, string> {
  const auth: Provider['auth'] = provider.auth === 'bearer' && provider.cloud === undefined ? 'x-goog-api-key' : provider.auth
  const sent = callHeaders({ ...provider, auth }, credential)
  return { ...sent, 'content-type': 'application/json', accept: stream ? 'text/event-stream' : 'application/json' }
}

function completionOf(reply: JsonObject): Record<string, unknown> {
  const candidates = objectsOf(reply['candidates'])
  const usage = geminiUsage(reply['usageMetadata'])
  return {
    ...(textOf(reply['responseId']) === '' ? {} : { id: reply['responseId'] }),
    object: 'chat.completion',
    choices: candidates.length > 0 ? candidates.map((candidate, index) => choiceOf(candidate, index, reply['responseId'])) : [unanswered(reply)],
    ...(usage === null ? {} : { usage: usageToOpenAi(usage) }),
  }
}

function unanswered(reply: JsonObject): Record<string, unknown> {
  const refusal = blockedPromptText(reply)
  const message = { role: 'assistant', content: refusal === null ? '' : null, refusal }
  return { index: 0, message, logprobs: null, finish_reason: refusal === null ? 'stop' : 'content_filter' }
}

function choiceOf(candidate: JsonObject, place: number, responseId: unknown): Record<string, unknown> {
  const index = typeof candidate['index'] === 'number' ? candidate['index'] : place
  const reader = new PartReader(index)
  const { content, reasoning, blocks, calls, images } = reader.read(candidate['content'], responseId)
  const refusal = blockedText(candidate)
  const message = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== null) ? null : content,
    refusal,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(blocks.length === 0 ? {} : { thinking_blocks: blocks }),
    ...(images.length === 0 ? {} : { images }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ index: _place, ...call }) => call) }),
  }
  return { index, message, logprobs: null, finish_reason: finishReason(candidate['finishReason'], calls.length > 0) ?? 'stop' }
}

/**
 * Matches messages about an account without money. The sentence about an exceeded quota is not among them, because this API uses it for every rate
 * limit.
 */
const billingWords = /credits? (?:are|is|have been) depleted|billing (?:account|is) (?:\w+ )?(?:disabled|not|closed)|enable billing/i
const wrongKeyWords = /API_KEY_INVALID|API[ _]key (?:not valid|expired|not found)/i

function failureOf(status: number, headers: Parameters<Dialect['failure']>[1], bodyText: string): Failure {
  if (status === 429 || status === 400 || status === 403) {
    if (billingWords.test(bodyText)) return { kind: 'billing', status }
    if (status === 400 && wrongKeyWords.test(bodyText)) return { kind: 'credential', status }
  }
  if (status !== 429) return classifyFailure(status, headers, bodyText)
  const known = classifyFailure(status, headers, '')
  return known.kind === 'rate-limited' && known.retryAfterSeconds === null ? { ...known, retryAfterSeconds: retryDelaySeconds(bodyText) } : known
}

/** Returns the time to wait from the body: `"retryDelay": "37s"`. */
function retryDelaySeconds(bodyText: string): number | null {
  const found = /"retryDelay":\s*"(\d{1,5})(?:\.\d+)?s"/.exec(bodyText)
  return found === null ? null : Math.max(1, Number(found[1]))
}
