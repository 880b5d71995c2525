/** The call of the playground as programs. The key stays in a variable. */
import type { ChatBody } from './run/stream-chat.ts'

/** A program for one SDK. */
export interface CodeSample {
  readonly id: string
  readonly label: string
  readonly text: string
}

/** The least `max_tokens` that the format of Anthropic demands. */
const anthropicMaxTokens = 1024

const json = (value: unknown, indent: number): string => JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(indent)}`)

/** Returns the same call with curl, and with the SDKs of OpenAI, Anthropic and Vercel. */
export function codeOf(origin: string, body: ChatBody): readonly CodeSample[] {
  return [
    { id: 'curl', label: 'curl', text: curl(origin, body) },
    { id: 'openai', label: 'OpenAI SDK', text: openAi(origin, body) },
    { id: 'anthropic', label: 'Anthropic SDK', text: anthropic(origin, body) },
    { id: 'ai-sdk', label: 'AI SDK', text: aiSdk(origin, body) },
  ]
}

function curl(origin: string, body: ChatBody): string {
  const data = JSON.stringify({ ...body, stream: true }, null, 2).replaceAll("'", "'\\''")
  return `curl -N ${origin}/v1/chat/completions \\\n  -H "authorization: Bearer $BRIGADE_KEY" \\\n  -H "content-type: application/json" \\\n  -d '${data}'`
}

function openAi(origin: string, body: ChatBody): string {
  return `import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: '${origin}/v1',
  apiKey: process.env.BRIGADE_KEY,
})
const stream = await client.chat.completions.create(${json({ ...body, stream: true }, 0)})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? '')
}`
}

function anthropic(origin: string, { model, messages, temperature, max_tokens }: ChatBody): string {
  const system = messages.find(({ role }) => role === 'system')?.content
  const sent = {
    model,
    max_tokens: max_tokens ?? anthropicMaxTokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(system === undefined ? {} : { system }),
    messages: messages.filter(({ role }) => role !== 'system'),
  }
  return `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({
  baseURL: '${origin}',
  apiKey: process.env.BRIGADE_KEY,
})
const stream = client.messages.stream(${json(sent, 0)})
for await (const event of stream) {
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
    process.stdout.write(event.delta.text)
  }
}`
}

function aiSdk(origin: string, { model, messages, temperature, max_tokens }: ChatBody): string {
  const more = [
    ...(temperature === undefined ? [] : [`\n  temperature: ${temperature},`]),
    ...(max_tokens === undefined ? [] : [`\n  maxOutputTokens: ${max_tokens},`]),
  ].join('')
  return `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'

const brigade = createOpenAICompatible({
  name: 'brigade',
  baseURL: '${origin}/v1',
  apiKey: process.env.BRIGADE_KEY,
})
const { textStream } = streamText({
  model: brigade(${JSON.stringify(model)}),${more}
  messages: ${json(messages, 2)},
})
for await (const text of textStream) process.stdout.write(text)`
}
