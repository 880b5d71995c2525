/** Makes streamed calls with real client libraries, and returns what they show to their users. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import { type LanguageModel, streamText } from 'ai'
import OpenAI from 'openai'

/** Makes one streamed call with a real client library. Calls `onText` for each text, and throws or returns the error that the library shows to its user. */
export type StreamClient = (baseUrl: string, key: string, model: string, onText: (text: string) => void) => Promise<unknown>

const prompt = 'Tell me a long story.'
const ceiling = 100_000

async function vercel(model: LanguageModel, onText: (text: string) => void): Promise<unknown> {
  let shown: unknown = null
  const result = streamText({ model, prompt, maxOutputTokens: ceiling, onError: () => undefined })
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') onText(part.text)
    if (part.type === 'error') shown = part.error
  }
  return shown
}

const chatClients: Readonly<Record<string, StreamClient>> = {
  async openai(baseUrl, apiKey, model, onText) {
    const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey })
    const stream = await client.chat.completions.create({ model, messages: [{ role: 'user', content: prompt }], max_tokens: ceiling, stream: true })
    for await (const chunk of stream) onText(chunk.choices[0]?.delta.content ?? '')
    return null
  },
  async langchain(baseUrl, apiKey, model, onText) {
    const client = new ChatOpenAI({ model, apiKey, maxTokens: ceiling, configuration: { baseURL: `${baseUrl}/v1` } })
    for await (const chunk of await client.stream(prompt)) onText(typeof chunk.content === 'string' ? chunk.content : '')
    return null
  },
  'ai with openai chat': (baseUrl, apiKey, model, onText) => vercel(createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey }).chat(model), onText),
  'ai with openai-compatible': (baseUrl, apiKey, model, onText) =>
    vercel(createOpenAICompatible({ name: 'gateway', baseURL: `${baseUrl}/v1`, apiKey })(model), onText),
}
const messagesClients: Readonly<Record<string, StreamClient>> = {
  async anthropic(baseURL, apiKey, model, onText) {
    const stream = new Anthropic({ baseURL, apiKey }).messages.stream({ model, max_tokens: ceiling, messages: [{ role: 'user', content: prompt }] })
    stream.on('text', onText)
    await stream.finalMessage()
    return null
  },
  'ai with anthropic': (baseUrl, apiKey, model, onText) => vercel(createAnthropic({ baseURL: `${baseUrl}/v1`, apiKey })(model), onText),
}
const responsesClients: Readonly<Record<string, StreamClient>> = {
  async openai(baseUrl, apiKey, model, onText) {
    const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey })
    let shown: unknown = null
    for await (const event of await client.responses.create({ model, input: prompt, max_output_tokens: ceiling, stream: true })) {
      if (event.type === 'response.output_text.delta') onText(event.delta)
      if (event.type === 'response.failed') shown = event.response.error
      if (event.type === 'response.completed') return null
    }
    return shown
  },
  'ai with openai responses': (baseUrl, apiKey, model, onText) => vercel(createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey }).responses(model), onText),
}

/** The clients of each API, with a model that is relayed and a model that is translated. */
export const streamApis = [
  { api: 'chat', clients: chatClients, relayed: 'alpha-only', translated: 'anthropic-model' },
  { api: 'messages', clients: messagesClients, relayed: 'anthropic-model', translated: 'alpha-only' },
  { api: 'responses', clients: responsesClients, relayed: 'responses-model', translated: 'alpha-only' },
] as const
