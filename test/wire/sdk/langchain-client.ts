import { AIMessageChunk, HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { type Ask, citySchema, pixelUrl, question, type SdkClient, type Told, weatherTool } from './ask.ts'

const noField = 'the package has no field for reasoning_content'

/** The package `@langchain/openai`: invoke, stream, bindTools, withStructuredOutput. */
export function langchain(baseUrl: string, apiKey: string): SdkClient {
  return {
    name: '@langchain/openai',
    api: 'chat',
    statusOf: error => (typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined),
    cannot: { thinking: noField, 'thinking streamed': noField, 'json schema streamed': 'withStructuredOutput is asked once, whole' },
    finishes: { stop: 'stop', tools: 'tool_calls', length: 'length', refused: 'content_filter' },
    async ask(ask: Ask): Promise<Told> {
      const model = new ChatOpenAI({ model: ask.model, apiKey, maxRetries: 0, configuration: { baseURL: `${baseUrl}/v1` }, streamUsage: true })
      const content = ask.image
        ? [
            { type: 'text' as const, text: question },
            { type: 'image_url' as const, image_url: { url: pixelUrl } },
          ]
        : question
      const input = [new HumanMessage({ content })]
      if (ask.schema) {
        const object: unknown = await model.withStructuredOutput(citySchema, { method: 'jsonSchema', name: 'answer', strict: true }).invoke(input)
        return { text: JSON.stringify(object), calls: [], finish: 'stop', reasoning: '', object }
      }
      const bound = ask.tools ? model.bindTools([{ type: 'function', function: weatherTool }]) : model
      let message: AIMessageChunk
      if (ask.stream) {
        let whole: AIMessageChunk | null = null
        for await (const chunk of await bound.stream(input)) whole = whole === null ? chunk : whole.concat(chunk)
        message = whole ?? new AIMessageChunk('')
      } else message = await bound.invoke(input)
      return {
        text: typeof message.content === 'string' ? message.content : JSON.stringify(message.content),
        calls: (message.tool_calls ?? []).map(({ name, args }) => ({ name, input: args })),
        finish: String(message.response_metadata['finish_reason']),
        reasoning: '',
        object: null,
      }
    },
  }
}
