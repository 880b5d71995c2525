import OpenAI from 'openai'
import type { ChatCompletionContentPart, ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions'
import type { ResponseCreateParamsNonStreaming, ResponseInputContent } from 'openai/resources/responses/responses'
import { type Ask, citySchema, pixelUrl, question, type SdkClient, type Told, weatherTool } from './ask.ts'

const clientOf = (baseUrl: string, apiKey: string): OpenAI => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 })
const statusOf = (error: unknown): unknown => (error instanceof OpenAI.APIError ? error.status : undefined)
const format = { name: 'answer', strict: true, schema: citySchema }

/** The package `openai`, chat completions: create, parse and the stream helper. */
export function openAiChat(baseUrl: string, apiKey: string): SdkClient {
  const client = clientOf(baseUrl, apiKey)
  return {
    name: 'openai chat',
    api: 'chat',
    statusOf,
    cannot: {},
    finishes: { stop: 'stop', tools: 'tool_calls', length: 'length', refused: 'content_filter' },
    async ask(ask: Ask): Promise<Told> {
      const content: ChatCompletionContentPart[] = [{ type: 'text', text: question }]
      if (ask.image) content.push({ type: 'image_url', image_url: { url: pixelUrl } })
      const body: ChatCompletionCreateParamsNonStreaming = {
        model: ask.model,
        messages: [
          { role: 'system', content: 'Be short.' },
          { role: 'user', content },
        ],
        ...(ask.tools ? { tools: [{ type: 'function', function: weatherTool }] } : {}),
        ...(ask.schema ? { response_format: { type: 'json_schema', json_schema: format } } : {}),
        ...(ask.thinking ? { reasoning_effort: 'high' } : {}),
      }
      // Thinking is collected from the chunks, because the helper keeps only the last piece of a field that it does not know.
      const thoughts: string[] = []
      const collect = (chunk: OpenAI.Chat.Completions.ChatCompletionChunk): void => {
        for (const { delta } of chunk.choices) if ('reasoning_content' in delta) thoughts.push(String(delta.reasoning_content))
      }
      const completion = ask.stream
        ? await client.chat.completions
            .stream({ ...body, stream: true })
            .on('chunk', collect)
            .finalChatCompletion()
        : ask.schema
          ? await client.chat.completions.parse(body)
          : await client.chat.completions.create(body)
      const [choice] = completion.choices
      const message = choice?.message as (OpenAI.Chat.Completions.ChatCompletionMessage & { reasoning_content?: string }) | undefined
      return {
        text: message?.content ?? '',
        calls: (message?.tool_calls ?? []).map(call =>
          call.type === 'function' ? { name: call.function.name, input: JSON.parse(call.function.arguments) as unknown } : { name: call.type, input: null },
        ),
        finish: choice?.finish_reason ?? '',
        reasoning: ask.stream ? thoughts.join('') : (message?.reasoning_content ?? ''),
        object: ask.schema ? (JSON.parse(message?.content ?? 'null') as unknown) : null,
      }
    },
  }
}

/** The package `openai`, responses: create, parse and the stream helper. */
export function openAiResponses(baseUrl: string, apiKey: string): SdkClient {
  const client = clientOf(baseUrl, apiKey)
  return {
    name: 'openai responses',
    api: 'responses',
    statusOf,
    cannot: {},
    finishes: { stop: 'completed', tools: 'completed', length: 'incomplete max_output_tokens', refused: 'incomplete content_filter' },
    async ask(ask: Ask): Promise<Told> {
      const content: ResponseInputContent[] = [{ type: 'input_text', text: question }]
      if (ask.image) content.push({ type: 'input_image', image_url: pixelUrl, detail: 'auto' })
      const body: ResponseCreateParamsNonStreaming = {
        model: ask.model,
        instructions: 'Be short.',
        store: false,
        input: [{ role: 'user', content }],
        ...(ask.tools ? { tools: [{ type: 'function', strict: true, ...weatherTool }] } : {}),
        ...(ask.schema ? { text: { format: { type: 'json_schema', ...format } } } : {}),
        ...(ask.thinking ? { reasoning: { effort: 'high', summary: 'auto' } } : {}),
      }
      const response = ask.stream
        ? await client.responses.stream({ ...body, stream: true }).finalResponse()
        : ask.schema
          ? await client.responses.parse(body)
          : await client.responses.create(body)
      const reason = response.incomplete_details?.reason
      return {
        text: response.output_text,
        calls: response.output.flatMap(item => (item.type === 'function_call' ? [{ name: item.name, input: JSON.parse(item.arguments) as unknown }] : [])),
        finish: reason === undefined ? String(response.status) : `${String(response.status)} ${reason}`,
        reasoning: response.output
          .flatMap(item => (item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])].map(({ text }) => text) : []))
          .join(''),
        object: ask.schema ? (JSON.parse(response.output_text) as unknown) : null,
      }
    },
  }
}
