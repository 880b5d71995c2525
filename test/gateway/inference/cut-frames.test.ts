import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import { type LanguageModel, streamText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

/** One streamed call of a real client library: says each text as it comes, and throws or returns what it shows its user as an error. */
type Client = (baseUrl: string, key: string, model: string, onText: (text: string) => void) => Promise<unknown>

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

const chatClients: Readonly<Record<string, Client>> = {
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
const messagesClients: Readonly<Record<string, Client>> = {
  async anthropic(baseURL, apiKey, model, onText) {
    const stream = new Anthropic({ baseURL, apiKey }).messages.stream({ model, max_tokens: ceiling, messages: [{ role: 'user', content: prompt }] })
    stream.on('text', onText)
    await stream.finalMessage()
    return null
  },
  'ai with anthropic': (baseUrl, apiKey, model, onText) => vercel(createAnthropic({ baseURL: `${baseUrl}/v1`, apiKey })(model), onText),
}
const responsesClients: Readonly<Record<string, Client>> = {
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

/** The clients of an API, with a model that is relayed to them and one that is translated. */
const apis = [
  { api: 'chat', clients: chatClients, relayed: 'alpha-only', translated: 'anthropic-model' },
  { api: 'messages', clients: messagesClients, relayed: 'anthropic-model', translated: 'alpha-only' },
  { api: 'responses', clients: responsesClients, relayed: 'responses-model', translated: 'alpha-only' },
] as const

describe('a stream that is cut, as real clients see it', () => {
  let app: TestApp
  let servers: readonly UpstreamServer[]
  let owner: string
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '1000' } })
    servers = [app.alpha, app.others.claude, app.others.gem, app.others.resp]
    owner = await app.signIn()
  })
  afterAll(() => app.stop())

  interface Cut {
    readonly key: string
    readonly script: Parameters<UpstreamServer['script']>[0]
    /** What the client must be told. */
    readonly says: RegExp
    /** Called when the client has read some text. */
    cut(): Promise<unknown>
  }
  const held = { holdAfterChunks: 3, chunks: Array.from({ length: 20 }, (_, index) => `word${index} `) }
  const cuts: Readonly<Record<string, () => Promise<Cut>>> = {
    'a budget that is spent': async () => ({
      key: (await app.newKey({ budgetInr: 0.03 })).key,
      script: { chunks: Array.from({ length: 400 }, () => 'word '.repeat(20)) },
      says: /budget/i,
      cut: async () => undefined,
    }),
    'an agent that is revoked': async () => {
      const { id, token } = await app.newAgent(`cut ${Math.random()}`)
      return { key: token, script: held, says: /revoked/i, cut: () => app.call('POST', `/v1/me/agents/${id}/revoke`, {}) }
    },
    'a key that is revoked': async () => {
      const { key, keyId } = await app.newKey()
      return { key, script: held, says: /revoked/i, cut: () => app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie: owner }) }
    },
    'a provider that breaks off': async () => ({
      key: (await app.newKey()).key,
      script: { breakAfterChunks: 3, chunks: held.chunks },
      says: /provider (broke off|ended)/i,
      cut: async () => undefined,
    }),
  }
  const totals = async () => {
    await app.gateway.app.limits.flushNow()
    const { requests, cost_uinr } = (await app.call('GET', '/v1/usage')).json.totals
    return { requests: Number(requests), costUinr: Number(cost_uinr) }
  }

  for (const { api, clients, ...models } of apis) {
    for (const [why, make] of Object.entries(cuts)) {
      test(`${api}: ${why} is shown, nothing is tried again, and nothing is charged behind the end`, async () => {
        for (const [name, client] of Object.entries(clients)) {
          for (const [way, model] of Object.entries(models)) {
            const at = `${name}, ${way}`
            const { key, script, says, cut } = await make()
            for (const server of servers) {
              server.reset()
              server.script([script].flat() as never)
            }
            const before = await totals()
            let text = ''
            const call = client(app.baseUrl, key, model, part => {
              text += part
            }).catch((error: unknown) => error)
            await until(() => text !== '')
            await cut()
            const shown = await call
            expect(shown, at).not.toBeNull()
            expect(wordsOf(shown), at).toMatch(says)
            const after = await totals()
            expect(after.requests - before.requests, at).toBe(1)
            expect(after.costUinr, at).toBeGreaterThan(before.costUinr)
            for (const server of servers) server.release()
            expect(
              servers.flatMap(server => server.requests),
              at,
            ).toHaveLength(1)
            expect(await totals(), at).toEqual(after)
          }
        }
      })
    }
  }
})

/** All that an error says, in whatever fields its library keeps it. */
function wordsOf(error: unknown, depth = 0): string {
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null || depth > 4) return ''
  const own = error instanceof Error ? [error.message, error.cause] : []
  return [...own, ...Object.values(error)].map(value => wordsOf(value, depth + 1)).join(' ')
}
