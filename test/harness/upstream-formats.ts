import type { RecordedRequest } from './upstream-server.ts'

/** How a scripted provider writes its default answer in one wire format. */
export interface UpstreamFormat {
  whole(request: RecordedRequest, text: string, usage: Readonly<Record<string, unknown>> | null): unknown
  /** Returns the beginning of the stream, which may be empty. */
  start(request: RecordedRequest): string
  content(request: RecordedRequest, text: string, index: number): string
  end(request: RecordedRequest, usage: Readonly<Record<string, unknown>> | null): string
  readonly errorFrame: string
}

/** Returns the wire format of a path. */
export function formatOf(path: string): UpstreamFormat {
  if (path.includes('/messages')) return anthropic
  if (path.includes('/responses')) return responses
  if (path.includes('enerateContent')) return gemini
  return openai
}

/** Returns true when the request asks for a stream, by a field of the body or by its path. */
export function wantsStream({ path, json }: RecordedRequest): boolean {
  return json?.['stream'] === true || path.includes(':streamGenerateContent')
}

const modelOf = ({ json }: RecordedRequest): unknown => json?.['model']
const named = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`
const unnamed = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

/** The usage of the default answer: 12 prompt tokens and 5 completion tokens. Every format reports it in its own fields. */
export const defaultUsage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }
const anthropicUsage = { input_tokens: 12, output_tokens: 5 }
const geminiUsage = { promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 }
const responsesUsage = {
  input_tokens: 12,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 17,
}

/** Returns the usage of a script. Undefined means the default usage, and null means none. */
const usageOr = (usage: Readonly<Record<string, unknown>> | null, standard: object): object =>
  usage === null || usage !== defaultUsage ? (usage ?? {}) : standard

const chunkOf = (request: RecordedRequest, delta: unknown, finish: string | null): string =>
  unnamed({
    id: 'chatcmpl-test',
    object: 'chat.completion.chunk',
    created: 1,
    model: modelOf(request),
    choices: [{ index: 0, delta, finish_reason: finish }],
  })

const openai: UpstreamFormat = {
  whole: (request, text, usage) => ({
    id: 'chatcmpl-test',
    object: 'chat.completion',
    created: 1,
    model: modelOf(request),
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    ...(usage === null ? {} : { usage }),
  }),
  start: () => '',
  content: (request, content, index) => chunkOf(request, index === 0 ? { role: 'assistant', content } : { content }, null),
  end(request, usage) {
    const options = request.json?.['stream_options'] as { include_usage?: boolean } | undefined
    const told =
      options?.include_usage === true && usage !== null
        ? unnamed({ id: 'chatcmpl-test', object: 'chat.completion.chunk', created: 1, model: modelOf(request), choices: [], usage })
        : ''
    return `${chunkOf(request, {}, 'stop')}${told}data: [DONE]\n\n`
  },
  errorFrame: 'data: {"error":{"message":"scripted failure","type":"server_error","code":null}}\n\n',
}

const anthropic: UpstreamFormat = {
  whole: (request, text, usage) => ({
    id: 'msg_upstream',
    type: 'message',
    role: 'assistant',
    model: modelOf(request),
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: usageOr(usage, anthropicUsage),
  }),
  start: request =>
    named('message_start', {
      message: {
        id: 'msg_upstream',
        type: 'message',
        role: 'assistant',
        model: modelOf(request),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 12, output_tokens: 1 },
      },
    }) + named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  content: (_request, text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  end: (_request, usage) =>
    named('content_block_stop', { index: 0 }) +
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: usageOr(usage, { output_tokens: 5 }) }) +
    named('message_stop', {}),
  errorFrame: named('error', { error: { type: 'api_error', message: 'scripted failure' } }),
}

const gemini: UpstreamFormat = {
  whole: (_request, text, usage) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
    usageMetadata: usageOr(usage, geminiUsage),
    modelVersion: 'gemini-upstream',
    responseId: 'gemini-test',
  }),
  start: () => '',
  content: (_request, text) =>
    unnamed({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }], modelVersion: 'gemini-upstream', responseId: 'gemini-test' }),
  end: (_request, usage) =>
    unnamed({
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }],
      usageMetadata: usageOr(usage, geminiUsage),
      modelVersion: 'gemini-upstream',
      responseId: 'gemini-test',
    }),
  errorFrame: unnamed({ error: { code: 500, message: 'scripted failure', status: 'INTERNAL' } }),
}

const responseOf = (request: RecordedRequest, status: string, text: string | null, usage: object | null): Record<string, unknown> => ({
  id: 'resp_upstream',
  object: 'response',
  created_at: 1,
  status,
  model: modelOf(request),
  output: text === null ? [] : [itemOf('completed', text)],
  usage,
  error: null,
  incomplete_details: null,
})
const itemOf = (status: string, text: string | null): object => ({
  type: 'message',
  id: 'msg_upstream',
  status,
  role: 'assistant',
  content: text === null ? [] : [{ type: 'output_text', text, annotations: [] }],
})

/** The texts that a stream has sent so far, for the final events that repeat them. */
const said = new WeakMap<RecordedRequest, string[]>()
const place = { item_id: 'msg_upstream', output_index: 0, content_index: 0 }

const responses: UpstreamFormat = {
  whole: (request, text, usage) => responseOf(request, 'completed', text, usageOr(usage, responsesUsage)),
  start(request) {
    said.set(request, [])
    return (
      named('response.created', { sequence_number: 0, response: responseOf(request, 'in_progress', null, null) }) +
      named('response.output_item.added', { sequence_number: 1, output_index: 0, item: itemOf('in_progress', null) }) +
      named('response.content_part.added', { sequence_number: 2, ...place, part: { type: 'output_text', text: '', annotations: [] } })
    )
  },
  content(request, text, index) {
    said.get(request)?.push(text)
    return named('response.output_text.delta', { sequence_number: 3 + index, ...place, delta: text })
  },
  end(request, usage) {
    const texts = said.get(request) ?? []
    const text = texts.join('')
    const next = 3 + texts.length
    return (
      named('response.output_text.done', { sequence_number: next, ...place, text }) +
      named('response.content_part.done', { sequence_number: next + 1, ...place, part: { type: 'output_text', text, annotations: [] } }) +
      named('response.output_item.done', { sequence_number: next + 2, output_index: 0, item: itemOf('completed', text) }) +
      named('response.completed', { sequence_number: next + 3, response: responseOf(request, 'completed', text, usageOr(usage, responsesUsage)) })
    )
  },
  errorFrame: named('error', { sequence_number: 99, code: 'server_error', message: 'scripted failure', param: null }),
}
