import Anthropic from '@anthropic-ai/sdk'
import type { ContentBlockParam, MessageCreateParamsNonStreaming } from '@anthropic-ai/sdk/resources/messages'
import { type Ask, citySchema, pixelBase64, question, type SdkClient, type Told, weatherTool } from './ask.ts'

/** The package `@anthropic-ai/sdk`: messages.create and the stream helper. */
export function anthropicMessages(baseUrl: string, apiKey: string): SdkClient {
  const client = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })
  return {
    name: '@anthropic-ai/sdk',
    api: 'messages',
    statusOf: error => (error instanceof Anthropic.APIError ? (error.status as unknown) : undefined),
    cannot: {},
    finishes: { stop: 'end_turn', tools: 'tool_use', length: 'max_tokens', refused: 'refusal' },
    async ask(ask: Ask): Promise<Told> {
      const content: ContentBlockParam[] = [{ type: 'text', text: question }]
      if (ask.image) content.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixelBase64 } })
      const body: MessageCreateParamsNonStreaming = {
        model: ask.model,
        max_tokens: 4000,
        system: 'Be short.',
        messages: [{ role: 'user', content }],
        ...(ask.tools ? { tools: [{ name: weatherTool.name, description: weatherTool.description, input_schema: citySchema }] } : {}),
        ...(ask.thinking ? { thinking: { type: 'enabled', budget_tokens: 2000 } } : {}),
        ...(ask.schema ? { output_config: { format: { type: 'json_schema', schema: citySchema } } } : {}),
      }
      const message = ask.stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body)
      const text = message.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('')
      return {
        text,
        calls: message.content.flatMap(block => (block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [])),
        finish: String(message.stop_reason),
        reasoning: message.content.flatMap(block => (block.type === 'thinking' ? [block.thinking] : [])).join(''),
        object: ask.schema ? (JSON.parse(text) as unknown) : null,
      }
    },
  }
}
