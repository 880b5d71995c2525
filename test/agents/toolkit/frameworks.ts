/**
 * The frameworks with which people build agents, each set up with one line of the toolkit. Each can run with a tool call in the middle, and can
 * stream.
 */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { tool as langchainTool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, tool as agentsTool, OpenAIProvider, Runner } from '@openai/agents'
import { generateText, type LanguageModel, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { z } from 'zod'
import type { ConnectedAgent } from '../../../src/agents/toolkit/connect-agent.ts'

/** A framework as a test uses it. It rejects with the error that its user would catch. */
export interface Framework {
  readonly name: string
  /** True when its error for a broken stream contains only the status and not the reason. */
  readonly hidesReason?: boolean
  /** Sends a prompt, runs `during` when the tool `wait` is called, and sends the result. Resolves to the answer. */
  run(agent: ConnectedAgent, during: () => Promise<string>): Promise<string>
  /** Streams an answer. `onText` runs at the first text. */
  stream(agent: ConnectedAgent, onText: () => Promise<void>): Promise<void>
}

const model = 'test-model'
const prompt = 'Wait a moment, then say hello.'
const toolName = 'wait'
const description = 'Waits.'
const parameters = { type: 'object', properties: {}, additionalProperties: false } as const
const messages = [{ role: 'user', content: prompt }] as const

const openaiChat: Framework = {
  name: 'openai, chat completions',
  async run(agent, during) {
    const client = new OpenAI(agent.openai())
    const runner = client.chat.completions.runTools({
      model,
      messages: [...messages],
      tools: [{ type: 'function', function: { name: toolName, description, parameters, parse: JSON.parse, function: during } }],
    })
    return (await runner.finalContent()) ?? ''
  },
  async stream(agent, onText) {
    const first = once(onText)
    const client = new OpenAI(agent.openai())
    for await (const chunk of await client.chat.completions.create({ model, messages: [...messages], stream: true })) {
      if (chunk.choices[0]?.delta.content) await first()
    }
  },
}

const openaiResponses: Framework = {
  name: 'openai, responses',
  async run(agent, during) {
    const client = new OpenAI(agent.openai())
    const input: OpenAI.Responses.ResponseInput = [...messages]
    const tools = [{ type: 'function' as const, name: toolName, description, parameters, strict: false }]
    const asked = await client.responses.create({ model, input, tools })
    for (const item of asked.output) {
      if (item.type !== 'function_call') continue
      input.push(item, { type: 'function_call_output', call_id: item.call_id, output: await during() })
    }
    return (await client.responses.create({ model, input, tools })).output_text
  },
  async stream(agent, onText) {
    const first = once(onText)
    const client = new OpenAI(agent.openai())
    for await (const event of await client.responses.create({ model, input: prompt, stream: true })) {
      if (event.type === 'response.output_text.delta') await first()
      // This SDK does not throw for failed responses. Its user must check them.
      if (event.type === 'response.failed') throw new Error(event.response.error?.message)
    }
  },
}

const anthropic: Framework = {
  name: '@anthropic-ai/sdk',
  async run(agent, during) {
    const client = new Anthropic(agent.anthropic())
    const wait = { type: 'custom' as const, name: toolName, description, input_schema: parameters, run: during, parse: (input: unknown) => input }
    const message = await client.beta.messages.toolRunner({ model, max_tokens: 200, messages: [...messages], tools: [wait] })
    return message.content.map(block => (block.type === 'text' ? block.text : '')).join('')
  },
  async stream(agent, onText) {
    const first = once(onText)
    const client = new Anthropic(agent.anthropic())
    const stream = client.messages.stream({ model, max_tokens: 200, messages: [...messages] })
    for await (const event of stream) {
      if (event.type === 'content_block_delta') await first()
    }
    // When an error arrives while nobody waits for the next event, the loop ends without throwing. `finalMessage` throws it.
    await stream.finalMessage()
  },
}

function aiSdk(name: string, modelOf: (agent: ConnectedAgent) => LanguageModel): Framework {
  return {
    name,
    async run(agent, during) {
      const wait = tool({ description, inputSchema: z.object({}), execute: during })
      return (await generateText({ model: modelOf(agent), prompt, tools: { [toolName]: wait }, stopWhen: stepCountIs(3) })).text
    },
    async stream(agent, onText) {
      const first = once(onText)
      for await (const part of streamText({ model: modelOf(agent), prompt, onError: () => undefined }).fullStream) {
        if (part.type === 'text-delta') await first()
        if (part.type === 'error') throw part.error
      }
    },
  }
}

const langchain: Framework = {
  name: '@langchain/openai with LangGraph',
  async run(agent, during) {
    const wait = langchainTool(during, { name: toolName, description, schema: z.object({}) })
    const graph = createReactAgent({ llm: new ChatOpenAI({ model, ...agent.langchain() }), tools: [wait] })
    const { messages: all } = await graph.invoke({ messages: [{ role: 'user', content: prompt }] })
    return String(all.at(-1)?.content)
  },
  async stream(agent, onText) {
    const first = once(onText)
    for await (const chunk of await new ChatOpenAI({ model, ...agent.langchain() }).stream(prompt)) {
      if (chunk.content !== '') await first()
    }
  },
}

function openaiAgents(name: string, useResponses: boolean): Framework {
  const runnerOf = (agent: ConnectedAgent) =>
    new Runner({ modelProvider: new OpenAIProvider({ openAIClient: new OpenAI(agent.openaiAgents()), useResponses }), tracingDisabled: true })
  return {
    name,
    hidesReason: useResponses,
    async run(agent, during) {
      const wait = agentsTool({ name: toolName, description, parameters: z.object({}), execute: during, errorFunction: null })
      const result = await runnerOf(agent).run(new Agent({ name: 'test', model, tools: [wait] }), prompt)
      return result.finalOutput ?? ''
    },
    async stream(agent, onText) {
      const first = once(onText)
      const result = await runnerOf(agent).run(new Agent({ name: 'test', model }), prompt, { stream: true })
      for await (const event of result) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') await first()
      }
      await result.completed
    },
  }
}

/** All frameworks. */
export const frameworks: readonly Framework[] = [
  openaiChat,
  openaiResponses,
  anthropic,
  aiSdk('AI SDK, openai-compatible', agent => createOpenAICompatible(agent.aiSdk())(model)),
  aiSdk('AI SDK, openai', agent => createOpenAI(agent.aiSdk())(model)),
  aiSdk('AI SDK, anthropic', agent => createAnthropic(agent.aiSdk())(model)),
  langchain,
  openaiAgents('OpenAI Agents SDK, chat completions', false),
  openaiAgents('OpenAI Agents SDK, responses', true),
]

/** Returns a function that runs `what` at its first call only. */
function once(what: () => Promise<void>): () => Promise<void> {
  let isDone = false
  return async () => {
    if (isDone) return
    isDone = true
    await what()
  }
}
