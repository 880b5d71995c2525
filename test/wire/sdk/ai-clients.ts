import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, jsonSchema, type LanguageModel, type ModelMessage, Output, streamText, type ToolSet, tool } from 'ai'
import { type Ask, citySchema, pixelBase64, question, type SdkClient, type Told, weatherTool } from './ask.ts'

/** Returns a client that uses the package `ai` with one of its providers. */
function aiClient(
  name: string,
  api: SdkClient['api'],
  modelOf: (id: string) => LanguageModel,
  thinkingOptions: Parameters<typeof generateText>[0]['providerOptions'],
  cannot: SdkClient['cannot'] = {},
): SdkClient {
  return {
    name,
    api,
    statusOf(error) {
      if (APICallError.isInstance(error)) return error.statusCode
      return error instanceof Error && APICallError.isInstance(error.cause) ? error.cause.statusCode : undefined
    },
    cannot,
    finishes: { stop: 'stop', tools: 'tool-calls', length: 'length', refused: 'content-filter' },
    async ask(ask: Ask): Promise<Told> {
      const messages: ModelMessage[] = [
        {
          role: 'user',
          content: [{ type: 'text', text: question }, ...(ask.image ? [{ type: 'file' as const, data: pixelBase64, mediaType: 'image/png' }] : [])],
        },
      ]
      const options = {
        model: modelOf(ask.model),
        maxRetries: 0,
        maxOutputTokens: 4000,
        messages,
        tools: (ask.tools ? { [weatherTool.name]: tool({ description: weatherTool.description, inputSchema: jsonSchema(citySchema) }) } : {}) as ToolSet,
        output: ask.schema ? Output.object({ schema: jsonSchema(citySchema), name: 'answer' }) : Output.text(),
        ...(ask.thinking && thinkingOptions ? { providerOptions: thinkingOptions } : {}),
      }
      if (!ask.stream) {
        const result = await generateText(options)
        return {
          text: result.text,
          calls: result.toolCalls.map(call => ({ name: call.toolName, input: call.input as unknown })),
          finish: result.finishReason,
          reasoning: result.reasoningText ?? '',
          object: ask.schema ? (result.output as unknown) : null,
        }
      }
      const failures: unknown[] = []
      const result = streamText({ ...options, onError: ({ error }) => void failures.push(error) })
      await result.consumeStream()
      if (failures.length > 0) throw failures[0]
      const calls = await result.toolCalls
      return {
        text: await result.text,
        calls: calls.map(call => ({ name: call.toolName, input: call.input as unknown })),
        finish: await result.finishReason,
        reasoning: (await result.reasoningText) ?? '',
        object: ask.schema ? ((await result.output) as unknown) : null,
      }
    },
  }
}

const noField = 'this provider of the package reads no reasoning_content; @ai-sdk/openai-compatible does'
const withoutReasoning = { thinking: noField, 'thinking streamed': noField }

export function aiClients(baseUrl: string, apiKey: string): readonly SdkClient[] {
  const baseURL = `${baseUrl}/v1`
  const openai = createOpenAI({ baseURL, apiKey })
  const compatible = createOpenAICompatible({ name: 'brigade', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })
  const anthropic = createAnthropic({ baseURL, apiKey })
  return [
    aiClient('ai, @ai-sdk/openai chat', 'chat', id => openai.chat(id), { openai: { reasoningEffort: 'high', forceReasoning: true } }, withoutReasoning),
    aiClient('ai, @ai-sdk/openai responses', 'responses', id => openai.responses(id), {
      openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true, store: false },
    }),
    aiClient('ai, @ai-sdk/openai-compatible', 'chat', id => compatible(id), { brigade: { reasoningEffort: 'high' } }),
    aiClient('ai, @ai-sdk/anthropic', 'messages', id => anthropic(id), { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } }),
  ]
}
